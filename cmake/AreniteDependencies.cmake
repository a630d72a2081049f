# Everything from the system, by pkg-config or find_package; scripts/install-deps names the packages.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)     # pictures that `arenite predict` is given
find_package(OpenSSL REQUIRED COMPONENTS Crypto)  # SHA-256 of the weights
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
if(ARENITE_TESTS)
  find_package(GTest REQUIRED)
  pkg_check_modules(ARENITE_MPFR REQUIRED IMPORTED_TARGET mpfr gmp)
endif()
if(ARENITE_BENCH)
  find_package(benchmark REQUIRED)
endif()

# Another StarPU may stand there than at the last configuring.
unset(ARENITE_STARPU_FOUND CACHE)
unset(__pkg_config_checked_ARENITE_STARPU CACHE)
foreach(library starpu-1.3 starpu-1.4)
  unset(pkgcfg_lib_ARENITE_STARPU_${library} CACHE)
endforeach()
unset(ARENITE_STARPU_HAS_CUDA CACHE)
pkg_check_modules(ARENITE_STARPU IMPORTED_TARGET starpu-1.4)
if(NOT ARENITE_STARPU_FOUND)
  pkg_check_modules(ARENITE_STARPU REQUIRED IMPORTED_TARGET starpu-1.3)
endif()
pkg_check_modules(ARENITE_HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(ARENITE_LIBXSMM REQUIRED IMPORTED_TARGET libxsmm)
pkg_check_modules(ARENITE_HIGHWAY REQUIRED IMPORTED_TARGET libhwy)
# A definition for other systems' libraries, which nothing but Highway's headers would read.
set_target_properties(PkgConfig::ARENITE_HIGHWAY PROPERTIES INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(ARENITE_SLEEF REQUIRED IMPORTED_TARGET sleef)
# Whether tasks can run on GPUs: StarPU's own header says how it was built.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::ARENITE_STARPU)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # to link says nothing of it
check_cxx_source_compiles("#include <starpu_config.h>
#ifndef STARPU_USE_CUDA
#error without CUDA
#endif
int main() {}" ARENITE_STARPU_HAS_CUDA)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
message(STATUS "StarPU ${ARENITE_STARPU_VERSION}, LIBXSMM ${ARENITE_LIBXSMM_VERSION}, hwloc ${ARENITE_HWLOC_VERSION}")

# LIBXSMM falls back to a BLAS for shapes it cannot JIT; we never call those paths, so the
# no-BLAS stub closes the link.
find_library(ARENITE_XSMM_NOBLAS xsmmnoblas REQUIRED)
add_library(arenite::xsmmnoblas UNKNOWN IMPORTED)
set_target_properties(arenite::xsmmnoblas PROPERTIES IMPORTED_LOCATION ${ARENITE_XSMM_NOBLAS})

# What whoever links the library must link, too; areniteConfig.cmake.in finds the same again.
set(ARENITE_LINKED PkgConfig::ARENITE_STARPU PkgConfig::ARENITE_HWLOC PkgConfig::ARENITE_LIBXSMM arenite::xsmmnoblas
  PkgConfig::ARENITE_HIGHWAY PkgConfig::ARENITE_SLEEF ZLIB::ZLIB OpenSSL::Crypto spdlog::spdlog Threads::Threads
  ${CMAKE_DL_LIBS})
# With what is only compiled with. No function of OpenMP is called: its flag is for `omp simd`.
add_library(arenite_dependencies INTERFACE)
target_link_libraries(arenite_dependencies INTERFACE
  ${ARENITE_LINKED} CLI11::CLI11 nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX)
