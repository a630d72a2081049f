#!/bin/sh
# cmake/ccache.sh CCACHE COMPILER ARGUMENTS...: compiles by ccache.
# An old precompiled header, where the new one is to be made, would be preprocessed instead of the headers that it is made
# of: ccache would take what was once made beside the same old one for the new one, whatever the headers say now.
for word; do
  case $word in *.gch) rm -f -- "$word" ;; esac
done
# To ccache a compiler in another locale is another one. Of precompiled headers, 100 MB each, it keeps the hash. (In its
# depend mode it would not see that presets with another StarPU compile most files alike.)
unset LC_ALL
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1
exec "$@"
