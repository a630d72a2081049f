# CUDA is optional: a toolkit that works is used, and none is required unless ARENITE_CUDA=ON.
set(ARENITE_HAVE_CUDA OFF)
if(NOT ARENITE_CUDA STREQUAL "OFF" AND NOT ARENITE_SANITIZE AND NOT ARENITE_FUZZERS)
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
    find_package(CUDAToolkit REQUIRED)
    set(ARENITE_HAVE_CUDA ON)
  elseif(ARENITE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ARENITE_CUDA=ON but no working CUDA compiler was found. "
      "Install a CUDA toolkit (nvcc on PATH, in /usr/local/cuda, or named by CUDACXX), or use the preset release.")
  endif()
endif()
message(STATUS "CUDA: ${ARENITE_HAVE_CUDA}")
