#!/bin/sh
# cmake/ccache.sh CCACHE COMPILER ARGUMENTS...: compiles by ccache.
set -e
previous='' made='' rule=''
for word; do
  shift
  case $previous/$word in
    # An old precompiled header, where the new one is to be made, would be preprocessed instead of the headers that it is
    # made of: ccache would take what was once made beside the same old one for the new one, whatever the headers say now.
    # `#pragma once` compares files with what they were when it was made, comments too, which only the depend mode sees.
    -o/*.gch) rm -f -- "$word"; export CCACHE_DEPEND=1 CCACHE_NAMESPACE=precompiled ;;
    -o/*.pch) made=$word ;;
    -MF/*) rule=$word ;;
    -Xclang/"$PWD"/*) word=${word#"$PWD"/} ;;  # ccache makes all others relative
  esac
  set -- "$@" "$word"
  previous=$word
done
# To ccache a compiler in another locale is another one. Of precompiled headers, 100 MB each, it keeps the hash. (In its
# depend mode it would not see that presets with another StarPU compile most files alike.)
unset LC_ALL
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 CCACHE_PCH_EXTSUM=1
[ -n "$made" ] || exec "$@"
# Clang's has paths of the checkout in it: each makes its own, and ccache takes the sum of what it was made of for its hash.
shift
"$@"
sed 's/^[^:]*: *//; s/\\$//' "$rule" | xargs cat -- | sha256sum >"$made.sum"
