# nixpkgs as far as Arenite's flake uses it, for evaluation without a network: tests/nix_test.py puts it in the place
# of the input. What is not named here is missing, as a name is that nixpkgs does not have.
{
  description = "A stub of nixpkgs";

  outputs = _: {
    lib = import ./lib.nix;
  };
}
