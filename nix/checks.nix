# What `nix flake check` runs besides the unit tests.
{ pkgs }:
let
  inherit (pkgs.lib) fileset;

  check =
    {
      name,
      tool,
      files,
      command,
    }:
    let
      source = fileset.toSource {
        root = ../.;
        fileset = fileset.unions files;
      };
    in
    pkgs.runCommand name { nativeBuildInputs = [ tool ]; } ''
      cd ${source}
      ${command}
      touch "$out"
    '';
in
{
  format = check {
    name = "arenite-nix-format";
    tool = pkgs.nixfmt;
    files = [
      ../flake.nix
      ../nix
    ];
    command = "find . -name '*.nix' -exec nixfmt --check {} +";
  };

  # That docs/nix.md names the pinned revision and every output, and the like.
  docs = check {
    name = "arenite-nix-docs";
    tool = pkgs.python3;
    files = [
      ../docs/nix.md
      ../flake.lock
      ../flake.nix
      ../nix
      ../scripts
      ../tests/nix_test.py
    ];
    command = "python3 tests/nix_test.py Pages";
  };
}
