# All outputs for one system.
{ nixpkgs, system }:
let
  # NVIDIA's parts are unfree. Only what is named cuda uses them; tests/nix_test.py holds that.
  pkgs = import nixpkgs {
    inherit system;
    config.allowUnfree = true;
  };
  inherit (pkgs) lib;

  fxt = pkgs.callPackage ./fxt.nix { };
  starpu = pkgs.callPackage ./starpu.nix { inherit fxt; };
  starpu-cuda = starpu.override { cudaSupport = true; };

  arenite = pkgs.callPackage ./arenite.nix { inherit starpu; };
  arenite-v3 = arenite.override { march = "x86-64-v3"; };
  arenite-v4 = arenite.override { march = "x86-64-v4"; };
  arenite-native = arenite.override { march = "native"; };
  arenite-cuda = arenite.override {
    starpu = starpu-cuda;
    cudaSupport = true;
  };

  # As a build by scripts/train: for this machine.
  train = pkgs.callPackage ./train.nix { arenite = arenite-native; };
  shell = pkgs.callPackage ./shell.nix { inherit arenite; };

  app = package: description: {
    type = "app";
    program = lib.getExe package;
    meta = { inherit description; };
  };
in
{
  packages = {
    default = arenite;
    inherit
      arenite
      arenite-cuda
      arenite-native
      arenite-v3
      arenite-v4
      fxt
      starpu
      starpu-cuda
      train
      ;
  };

  devShells = {
    default = shell;
    cuda = shell.override {
      arenite = arenite-cuda;
      cudaSupport = true;
    };
  };

  apps = {
    default = app arenite "The arenite command";
    train = app train "Train on Fashion-MNIST, or on drawn garments where it cannot be had";
  };

  checks = {
    inherit arenite;
    # As CI builds and runs them.
    unit-tests = arenite-native.override { tests = true; };
  }
  // import ./checks.nix { inherit pkgs; };

  formatter = pkgs.nixfmt-tree;
}
