# cuDNN is optional: CUDNN_ROOT names its place where it is not among the toolkit's or the system's,
# and ARENITE_CUDNN=OFF leaves it alone.
set(ARENITE_CUDNN "AUTO" CACHE STRING "cuDNN, with CUDA: AUTO (use it if there is one) or OFF")
# Another one may stand there than at the last configuring.
unset(ARENITE_CUDNN_INCLUDE CACHE)
unset(ARENITE_CUDNN_LIBRARY CACHE)
set(places ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${CUDAToolkit_LIBRARY_ROOT} /usr/local/cuda /usr/local)
find_path(ARENITE_CUDNN_INCLUDE cudnn_version.h
  HINTS ${places} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(ARENITE_CUDNN_LIBRARY cudnn
  HINTS ${places} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)

set(ARENITE_HAVE_CUDNN OFF)
if(ARENITE_CUDNN STREQUAL "OFF")
  message(STATUS "cuDNN: OFF (ARENITE_CUDNN=OFF)")
elseif(NOT ARENITE_CUDNN_INCLUDE OR NOT ARENITE_CUDNN_LIBRARY)
  message(STATUS "cuDNN: OFF (no cudnn_version.h and libcudnn.so; CUDNN_ROOT names their place)")
else()
  file(STRINGS ${ARENITE_CUDNN_INCLUDE}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*CUDNN_MAJOR ([0-9]+).*CUDNN_MINOR ([0-9]+).*" "\\1.\\2" version "${lines}")
  if(version VERSION_LESS 9)
    message(STATUS "cuDNN: OFF (${version} in ${ARENITE_CUDNN_INCLUDE}; expected 9 or newer)")
  else()
    set(ARENITE_HAVE_CUDNN ON)
    message(STATUS "cuDNN: ON (${version}, ${ARENITE_CUDNN_LIBRARY})")
    add_library(arenite::cudnn UNKNOWN IMPORTED)
    set_target_properties(arenite::cudnn PROPERTIES
      IMPORTED_LOCATION ${ARENITE_CUDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ARENITE_CUDNN_INCLUDE})
  endif()
endif()
