# The packages that Arenite's flake may name, each with the file in nixpkgs that gave evidence of it, as far as one was
# found in a public copy. "manual": a function of every nixpkgs, described in its manual. The revision that flake.lock
# pins was not at hand as a whole: these files are of it, of the same release, or shortly before or after.
{
  # Libraries
  cli11 = "pkgs/by-name/cl/cli11/package.nix";
  gbenchmark = "pkgs/by-name/gb/gbenchmark/package.nix";
  gtest = "pkgs/by-name/gt/gtest/package.nix";
  hwloc = "pkgs/by-name/hw/hwloc/package.nix";
  libhwy = "pkgs/by-name/li/libhwy/package.nix";
  libpng = "pkgs/by-name/li/libpng/package.nix";
  libxsmm = "pkgs/by-name/li/libxsmm/package.nix"; # 1.17, marked broken on aarch64-linux
  mpfr = "pkgs/by-name/mp/mpfr/package.nix";
  nlohmann_json = "pkgs/by-name/nl/nlohmann_json/package.nix";
  openssl = "manual";
  sleef = "pkgs/development/libraries/sleef/default.nix";
  spdlog = "pkgs/by-name/sp/spdlog/package.nix";
  zlib = "pkgs/development/libraries/zlib/default.nix";

  # Tools
  autoAddDriverRunpath = "pkgs/by-name/au/autoAddDriverRunpath/package.nix";
  bash = "manual";
  bashInteractive = "pkgs/shells/bash/5.nix";
  ccache = "pkgs/by-name/cc/ccache/package.nix";
  clang = "manual";
  clang-tools = "pkgs/development/tools/clang-tools";
  cmake = "pkgs/by-name/cm/cmake/package.nix";
  coreutils = "manual";
  curl = "manual";
  flamegraph = "pkgs/by-name/fl/flamegraph/package.nix";
  gdb = "pkgs/by-name/gd/gdb/package.nix";
  git = "manual";
  gzip = "manual";
  hyperfine = "pkgs/by-name/hy/hyperfine/package.nix";
  makeWrapper = "manual";
  ninja = "pkgs/by-name/ni/ninja/package.nix";
  nixfmt = "doc/release-notes/rl-2511.section.md";
  nixfmt-tree = "pkgs/by-name/ni/nixfmt-tree/package.nix";
  perf = "pkgs/by-name/pe/perf/package.nix"; # top-level since August 2025
  perl = "manual";
  pkg-config = "manual";
  shellcheck = "manual";
  strace = "pkgs/by-name/st/strace/package.nix";
  util-linux = "manual";
  valgrind = "pkgs/by-name/va/valgrind/package.nix";
}
