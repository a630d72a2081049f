# FxT, with which StarPU records traces; nixpkgs has none.
{
  lib,
  stdenv,
  fetchzip,
  perl,
}:
stdenv.mkDerivation (finalAttrs: {
  pname = "fxt";
  version = "0.3.15";

  # Published with a package for a fork of nixpkgs. Debian's fxt_0.3.15.orig.tar.gz unpacks to the same hash.
  src = fetchzip {
    url = "mirror://savannah/fkt/fxt-${finalAttrs.version}.tar.gz";
    hash = "sha256-5sBbzF2ua7t9wjh4L5B/Gzjp2AVDdxmpZ6WugQXBxrI=";
  };

  strictDeps = true;
  nativeBuildInputs = [ perl ];

  postPatch = ''
    patchShebangs tools
  '';

  enableParallelBuilding = true;

  meta = {
    description = "Fast recording of what programs and kernels do";
    homepage = "https://savannah.nongnu.org/projects/fkt/";
    license = lib.licenses.gpl2Plus;
    platforms = lib.platforms.linux;
  };
})
