# Language level, warnings, sanitizers and the two helpers every room uses.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(ARENITE_CCACHE ccache)
if(ARENITE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER sh ${CMAKE_CURRENT_LIST_DIR}/ccache.sh ${ARENITE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ARENITE_CCACHE})
endif()

add_library(arenite_settings INTERFACE)
# What nearly every file includes is compiled once for the library and once for the tests.
target_compile_options(arenite_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
set(ARENITE_PRECOMPILED <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map>
  <utility> <vector> <arenite/error.hpp> <arenite/types.hpp>)
target_compile_options(arenite_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
# Profilers find out who called by frame pointers (scripts/profile); bench/NOTES.md says what that costs.
target_compile_options(arenite_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
# GCC 12 sees overlapping copies in `"text" + std::string` (its bug 105651), and with precompiled headers copies without an end.
target_compile_options(arenite_settings INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>")
# It says so where a loop that asks for vectors gets none: without optimisation, or under sanitizers.
target_compile_options(arenite_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
if(ARENITE_WERROR)
  target_compile_options(arenite_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  target_compile_options(arenite_settings INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(ARENITE_SANITIZE)
  target_compile_options(arenite_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ARENITE_SANITIZE} -fno-sanitize-recover=all>)
  target_link_options(arenite_settings INTERFACE -fsanitize=${ARENITE_SANITIZE})
endif()
if(ARENITE_SANITIZE MATCHES "undefined")
  # A third of the compile time, and half of the planners' speed, for pointers that AddressSanitizer watches anyway.
  target_compile_options(arenite_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,object-size,vptr>)
endif()
foreach(flag CHECKED PLAIN_KERNELS)
  if(ARENITE_${flag})
    target_compile_definitions(arenite_settings INTERFACE ARENITE_${flag}=1)
  else()
    target_compile_definitions(arenite_settings INTERFACE ARENITE_${flag}=0)
  endif()
endforeach()

# Of what is not timed, a quarter of the compile time less, and as fast.
set(ARENITE_CALCULATES_LITTLE $<$<CONFIG:Release>:-O1>)
# Files on Highway, which makes the instructions of every processor, are for none themselves; nor are products and sums
# fused behind its back.
set(ARENITE_ON_HIGHWAY $<$<CONFIG:Release>:-O3> -ffp-contract=off)

# arenite_test_library(name a.cpp…): what several tests share is compiled once, as a part of a program, so that the tests'
# precompiled headers fit. The first one has these.
function(arenite_test_library name)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(${name} PUBLIC arenite_test_settings)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
  if(name STREQUAL arenite_test_headers)
    target_precompile_headers(${name} PRIVATE ${ARENITE_PRECOMPILED} <random> <gtest/gtest.h>)
  else()
    target_precompile_headers(${name} REUSE_FROM arenite_test_headers)
  endif()
endfunction()

# arenite_test(NAME name SOURCES a.cpp… [LABEL unit] [TIMEOUT seconds] [LIBS …] [SERIAL] [MACHINE])
# SERIAL: it measures time, and runs alone. MACHINE: what it says depends on time, processes or signals, and so on what
# else the machine does; the label machine, besides.
function(arenite_test)
  if(NOT ARENITE_TESTS)
    return()
  endif()
  cmake_parse_arguments(T "SERIAL;MACHINE" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 240)
    if(ARENITE_SANITIZE OR T_MACHINE)
      set(T_TIMEOUT 900)  # ten times as slow, at worst
    endif()
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE arenite_test_settings ${T_LIBS})
  target_precompile_headers(${T_NAME} REUSE_FROM arenite_test_headers)
  set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${T_NAME} COMMAND ${T_NAME})
  set_tests_properties(${T_NAME} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT})
  if(T_SERIAL)
    set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
  if(T_MACHINE)
    set_property(TEST ${T_NAME} APPEND PROPERTY LABELS machine)
  endif()
  if(ARENITE_SANITIZE STREQUAL "thread")
    set_tests_properties(${T_NAME} PROPERTIES
      ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
  endif()
endfunction()
