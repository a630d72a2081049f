# The command, the libraries and the headers. `march` is what GCC calls the processors that it is compiled for; with
# "native" the machine that builds, which the store path does not tell. With `tests` the unit tests run, too.
{
  lib,
  stdenv,
  autoAddDriverRunpath,
  bashInteractive,
  cli11,
  cmake,
  cudaPackages_13,
  curl,
  gtest,
  hwloc,
  libhwy,
  libpng,
  libxsmm,
  mpfr,
  ninja,
  nlohmann_json,
  openssl,
  pkg-config,
  python3,
  sleef,
  spdlog,
  starpu,
  util-linux,
  zlib,
  cudaSupport ? false,
  march ? "x86-64",
  tests ? false,
}:
let
  builder = if cudaSupport then cudaPackages_13.backendStdenv else stdenv;

  native = march == "native";

  variant =
    lib.optionalString cudaSupport "-cuda"
    + lib.optionalString (march != "x86-64") "-${lib.removePrefix "x86-64-" march}"
    + lib.optionalString tests "-tests";

  # As CMake reads it.
  version = lib.head (
    builtins.match ".*project\\(arenite VERSION ([0-9.]+).*" (builtins.readFile ../CMakeLists.txt)
  );
in
builder.mkDerivation {
  pname = "arenite${variant}";
  inherit version;

  src = import ./source.nix { inherit lib tests; };

  # There is no /usr/bin/env where it is built.
  postPatch = lib.optionalString tests ''
    patchShebangs --build .
  '';

  strictDeps = true;
  nativeBuildInputs = [
    cmake
    ninja
    pkg-config
  ]
  ++ lib.optionals cudaSupport [
    autoAddDriverRunpath
    cudaPackages_13.cuda_nvcc
  ];

  buildInputs = [
    cli11
    libpng
    nlohmann_json
  ]
  ++ lib.optionals tests [
    gtest
    mpfr
  ];

  # What a program is linked with that is linked with the C++ library.
  propagatedBuildInputs = [
    hwloc
    libhwy
    libxsmm
    openssl
    sleef
    spdlog
    starpu
    zlib
  ]
  ++ lib.optionals cudaSupport [
    cudaPackages_13.cuda_cccl
    cudaPackages_13.cuda_crt
    cudaPackages_13.cuda_cudart
    cudaPackages_13.cuda_nvrtc
    cudaPackages_13.cudnn
    cudaPackages_13.libcublas
  ];

  # The builder's own bash has no completion; util-linux has taskset.
  nativeCheckInputs = lib.optionals tests [
    bashInteractive
    curl
    (python3.withPackages (packages: [ packages.numpy ]))
    util-linux
  ];

  cmakeFlags = [
    (lib.cmakeBool "ARENITE_NATIVE" native)
    (lib.cmakeBool "ARENITE_TESTS" tests)
    (lib.cmakeBool "ARENITE_BENCH" false)
    (lib.cmakeFeature "ARENITE_CUDA" (if cudaSupport then "ON" else "OFF"))
  ]
  ++ lib.optional (!native) (lib.cmakeFeature "CMAKE_CXX_FLAGS" "-march=${march}")
  # Tests load libraries that are not installed yet.
  ++ lib.optional tests (lib.cmakeBool "CMAKE_SKIP_BUILD_RPATH" false)
  # And they install in folders of their own, which CMake's hook, whose flags stand before these, does not allow: it
  # names folders in the store.
  ++ lib.optionals tests [
    (lib.cmakeFeature "CMAKE_INSTALL_BINDIR" "bin")
    (lib.cmakeFeature "CMAKE_INSTALL_DOCDIR" "share/doc/arenite")
    (lib.cmakeFeature "CMAKE_INSTALL_INCLUDEDIR" "include")
    (lib.cmakeFeature "CMAKE_INSTALL_LIBDIR" "lib")
  ];

  # Else the compiler's wrapper drops -march=native; another machine's result may hold instructions that this one lacks.
  env = lib.optionalAttrs native { NIX_ENFORCE_NO_NATIVE = "0"; };
  preferLocalBuild = native;
  allowSubstitutes = !native;

  # StarPU keeps what it measured of the machine in the home folder. There is no /sys, of which hwloc would warn.
  doCheck = tests;
  checkPhase = ''
    runHook preCheck
    export HOME=$TMPDIR HWLOC_HIDE_ERRORS=2
    ctest --label-regex '^unit$' --output-on-failure --parallel "$NIX_BUILD_CORES"
    runHook postCheck
  '';

  meta = {
    description = "Neural-network training with its memory proven before it runs";
    license = lib.licenses.mit;
    mainProgram = "arenite";
    platforms = [ "x86_64-linux" ];
  };
}
