# CUDA is optional: a toolkit that works is used where StarPU can run tasks on GPUs, and none is
# required unless ARENITE_CUDA=ON.
set(ARENITE_HAVE_CUDA OFF)
set(why "ARENITE_CUDA=${ARENITE_CUDA}")
if(ARENITE_SANITIZE)
  set(why "not with sanitizers")
elseif(NOT ARENITE_CUDA STREQUAL "OFF" AND NOT ARENITE_STARPU_HAS_CUDA)
  set(why "StarPU ${ARENITE_STARPU_VERSION} in ${ARENITE_STARPU_LIBDIR} was built without CUDA; scripts/build-starpu builds one with it, which the preset cuda finds in build/starpu")
elseif(NOT ARENITE_CUDA STREQUAL "OFF")
  set(why "no working CUDA compiler: nvcc on PATH, in /usr/local/cuda, or named by CUDACXX")
  # The toolkit's default place is not on everybody's PATH. check_language tries a compiler without
  # failing, so that a broken toolkit costs nobody the build.
  if(NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(ENV{CUDACXX} /usr/local/cuda/bin/nvcc)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # and PTX of 90 for whatever is newer
    endif()
    enable_language(CUDA)
    # CMake 3.25 does not know which flag asks a newer nvcc for C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    # For lambdas that are given to grids (codelets/cuda/grid.hpp).
    string(APPEND CMAKE_CUDA_FLAGS " --extended-lambda")
    # So that tests find the PTX of kernels in programs, and run it (tests/ptx); not in bundles, which are to be small,
    # nor with sanitizers, under which nothing runs it.
    if(ARENITE_TESTS AND NOT ARENITE_ONE_LIBRARY)
      string(APPEND CMAKE_CUDA_FLAGS " --no-compress")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(ARENITE_HAVE_CUDA ON)
    include(AreniteCudnn)
  endif()
endif()
if(ARENITE_HAVE_CUDA)
  message(STATUS "CUDA: ON")
elseif(ARENITE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "ARENITE_CUDA=ON, but ${why}. The preset release needs no CUDA.")
else()
  message(STATUS "CUDA: OFF (${why})")
endif()
