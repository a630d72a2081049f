# scripts/train itself, in a tree in which all is installed and built.
{
  lib,
  runCommand,
  runtimeShell,
  makeWrapper,
  arenite,
  bash,
  coreutils,
  curl,
  gzip,
  util-linux,
}:
runCommand "arenite-train"
  {
    nativeBuildInputs = [ makeWrapper ];
    meta.mainProgram = "arenite-train";
  }
  ''
    tree=$out/libexec/arenite-train
    install -D ${../scripts/train} "$tree/scripts/train"
    install -D ${../datasets/fetch} "$tree/datasets/fetch"
    for done in install-deps build; do
      printf '#!%s\n' ${runtimeShell} >"$tree/scripts/$done"
      chmod +x "$tree/scripts/$done"
    done
    mkdir -p "$tree/build/release"
    ln -s ${lib.getExe arenite} "$tree/build/release/arenite"
    patchShebangs "$tree"
    makeWrapper "$tree/scripts/train" "$out/bin/arenite-train" --prefix PATH : ${
      lib.makeBinPath [
        bash
        coreutils
        curl
        gzip
        util-linux
      ]
    }
  ''
