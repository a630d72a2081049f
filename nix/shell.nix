# What builds, debugs and measures Arenite. As on any other system the builds in it are for the machine at hand.
{
  lib,
  mkShell,
  arenite,
  bashInteractive,
  ccache,
  clang,
  clang-tools,
  cudaPackages_13,
  curl,
  flamegraph,
  gbenchmark,
  gdb,
  git,
  gtest,
  hyperfine,
  llvmPackages,
  mpfr,
  nixfmt-tree,
  perf,
  python3,
  shellcheck,
  strace,
  valgrind,
  cudaSupport ? false,
}:
let
  builder =
    if cudaSupport then mkShell.override { stdenv = cudaPackages_13.backendStdenv; } else mkShell;
in
builder {
  name = "arenite${lib.optionalString cudaSupport "-cuda"}";

  inputsFrom = [ arenite ];

  buildInputs = [
    gbenchmark
    gtest
    mpfr
  ]
  ++ lib.optional cudaSupport cudaPackages_13.cuda_cupti;

  packages = [
    # to build, format and check; the builder's own bash has no completion
    bashInteractive
    ccache
    clang
    clang-tools
    curl
    git
    llvmPackages.openmp
    nixfmt-tree
    shellcheck
    # to debug
    gdb
    strace
    valgrind
    # to measure
    flamegraph
    hyperfine
    perf
    # Python, with what builds wheels
    (python3.withPackages (packages: [
      packages.numpy
      packages.pip
      packages.pytest
      packages.setuptools
      packages.wheel
    ]))
  ]
  ++ lib.optionals cudaSupport (
    map lib.getBin [
      cudaPackages_13.cuda_cuobjdump
      cudaPackages_13.cuda_gdb
      cudaPackages_13.cuda_nvdisasm
      cudaPackages_13.cuda_sanitizer_api
      cudaPackages_13.nsight_compute
      cudaPackages_13.nsight_systems
    ]
  );

  # The presets choose the compiler's flags: _FORTIFY_SOURCE warns in builds without optimization, and without this
  # the wrapper drops -march=native.
  hardeningDisable = [ "all" ];
  NIX_ENFORCE_NO_NATIVE = "0";
}
