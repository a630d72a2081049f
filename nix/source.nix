# The files of a build: what the package is made of, or with `tests` all that they read.
{ lib, tests }:
let
  inherit (lib) fileset;

  results = [
    ../.git
    ../build
    ../result
    ../results
  ];

  # To edit these is no reason to build again. Pages are installed.
  besides = [
    ../.ci
    ../CONTRIBUTING.md
    ../bench
    ../flake.lock
    ../flake.nix
    ../nix
    ../tests
  ];

  left = results ++ lib.optionals (!tests) besides;
in
fileset.toSource {
  root = ../.;
  fileset = fileset.difference ../. (fileset.unions (map fileset.maybeMissing left));
}
