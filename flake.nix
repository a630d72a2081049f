# What it gives, and what of it was tried: docs/nix.md. The parts are in nix/.
{
  description = "Neural-network training with its memory proven before it runs";

  # Pinned by flake.lock; docs/nix.md says where its hash was published.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;

      # LIBXSMM 1.17 generates code for x86-64 alone, and every build needs it.
      systems = [ "x86_64-linux" ];

      parts = lib.genAttrs systems (system: import ./nix { inherit nixpkgs system; });
      each = output: lib.mapAttrs (_: part: part.${output}) parts;
    in
    {
      packages = each "packages";
      devShells = each "devShells";
      apps = each "apps";
      checks = each "checks";
      formatter = each "formatter";
    };
}
