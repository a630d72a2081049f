# `import nixpkgs { … }`. Derivations are real, and carry what they were given, but none can be built.
{
  system,
  config ? { },
}:
let
  lib = import ./lib.nix;

  # What stdenv.mkDerivation takes here, besides the name: a misspelt argument would only become a variable of the
  # builder's environment, and nobody would notice.
  known = [
    "allowSubstitutes"
    "buildCommand"
    "buildInputs"
    "checkPhase"
    "cmakeFlags"
    "configureFlags"
    "doCheck"
    "enableParallelBuilding"
    "env"
    "hardeningDisable"
    "meta"
    "name"
    "nativeBuildInputs"
    "nativeCheckInputs"
    "pname"
    "postPatch"
    "preferLocalBuild"
    "propagatedBuildInputs"
    "src"
    "strictDeps"
    "version"
    "NIX_ENFORCE_NO_NATIVE"
  ];

  licensed =
    meta:
    (meta.license.free or true)
    || config.allowUnfree or false
    || throw "this package has an unfree license (config.allowUnfree)";

  mkDerivation =
    argument:
    let
      arguments = if builtins.isFunction argument then argument arguments else argument;
      unknown = builtins.filter (name: !(builtins.elem name known)) (builtins.attrNames arguments);
      meta = arguments.meta or { };
      environment = arguments.env or { };
      name = arguments.name or "${arguments.pname}-${arguments.version}";
    in
    assert unknown == [ ] || throw "mkDerivation: unknown argument ${builtins.head unknown} of ${name}";
    assert licensed meta;
    assert
      !(meta ? platforms)
      || builtins.elem system meta.platforms
      || throw "${name} is not for ${system}";
    derivation (
      builtins.removeAttrs arguments [
        "env"
        "meta"
      ]
      // environment
      // {
        inherit name system;
        builder = "/no/builder";
        args = [ "stub" ];
      }
    )
    // {
      inherit meta arguments;
    };

  stdenvOf = compiler: {
    inherit mkDerivation;
    cc = package "${compiler}-wrapper" { };
  };

  package =
    name: meta:
    mkDerivation {
      inherit name meta;
    };

  cudaPackages_13 =
    lib.genAttrs (import ./cuda.nix) (
      name: package "cuda13.0-${name}" { license = lib.licenses.unfree; }
    )
    // {
      backendStdenv = stdenvOf "gcc-for-cuda";
    };

  # `override` gives arguments anew, and misses none that a function asks for.
  callWith =
    scope: function: given:
    let
      f = if builtins.isFunction function then function else import function;
      wanted = builtins.functionArgs f;
      stray = builtins.filter (name: !(wanted ? ${name})) (builtins.attrNames given);
      found = builtins.intersectAttrs wanted scope // given;
      missing = builtins.filter (name: !(found ? ${name}) && !wanted.${name}) (builtins.attrNames wanted);
    in
    assert missing == [ ] || throw "callPackage: nixpkgs has no ${builtins.head missing}";
    assert stray == [ ] || throw "callPackage: called with unexpected argument ${builtins.head stray}";
    f found
    // {
      override = changes: callWith scope function (given // changes);
    };

  mkShellOf =
    stdenv:
    {
      packages ? [ ],
      inputsFrom ? [ ],
      buildInputs ? [ ],
      nativeBuildInputs ? [ ],
      ...
    }@arguments:
    let
      merged = kind: builtins.concatLists (map (from: from.arguments.${kind} or [ ]) inputsFrom);
    in
    stdenv.mkDerivation (
      builtins.removeAttrs arguments [
        "inputsFrom"
        "packages"
      ]
      // {
        buildInputs = buildInputs ++ merged "buildInputs";
        propagatedBuildInputs = merged "propagatedBuildInputs";
        nativeBuildInputs = packages ++ nativeBuildInputs ++ merged "nativeBuildInputs";
      }
    );

  python3 = package "python3" { mainProgram = "python3"; } // {
    withPackages =
      choose:
      mkDerivation {
        name = "python3-env";
        buildInputs = choose (
          lib.genAttrs [
            "numpy"
            "pip"
            "pytest"
            "setuptools"
            "wheel"
          ] (name: package "python3-${name}" { })
        );
      };
  };

  fetch =
    name:
    { url, hash }:
    assert
      builtins.match "sha256-[A-Za-z0-9+/]{43}=" hash != null || throw "${name}: not a hash: ${hash}";
    mkDerivation {
      inherit name;
      src = "${url} ${hash}";
    };

  pkgs = builtins.mapAttrs (name: _: package name { mainProgram = name; }) (import ./names.nix) // {
    inherit
      cudaPackages_13
      lib
      pkgs
      python3
      ;
    stdenv = stdenvOf "gcc";
    callPackage = callWith pkgs;
    fetchurl = fetch "fetchurl";
    fetchzip = fetch "fetchzip";
    llvmPackages.openmp = package "openmp" { };
    mkShell = {
      __functor = _: mkShellOf pkgs.stdenv;
      override = { stdenv }: mkShellOf stdenv;
    };
    runCommand =
      name: arguments: command:
      mkDerivation (
        arguments
        // {
          inherit name;
          buildCommand = command;
        }
      );
    runtimeShell = "${pkgs.bash}/bin/bash";
  };
in
pkgs
