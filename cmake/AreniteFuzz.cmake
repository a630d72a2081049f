# libFuzzer targets, only with ARENITE_FUZZERS=ON (preset fuzz): `cmake --build … --target fuzzers`,
# then `ctest -L fuzz` runs each for ARENITE_FUZZ_SECONDS.
set(ARENITE_FUZZ_SECONDS 30 CACHE STRING "How long `ctest -L fuzz` runs each fuzzer")
if(ARENITE_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ARENITE_FUZZERS needs clang (found ${CMAKE_CXX_COMPILER_ID}). "
      "Use the preset fuzz, or set CMAKE_CXX_COMPILER=clang++.")
  endif()
  # The library itself is instrumented: a fuzzer is only guided by the code it can see.
  target_compile_options(arenite_settings INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(arenite_settings INTERFACE -fsanitize=address,undefined)
  add_custom_target(fuzzers)
endif()

# arenite_fuzzer(NAME name SOURCES a.cpp… [CORPUS folder of seeds] [DICTIONARY file] [MAX_LENGTH bytes]
#                [LIBS …])
function(arenite_fuzzer)
  if(NOT ARENITE_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(F "" "NAME;CORPUS;DICTIONARY;MAX_LENGTH" "SOURCES;LIBS" ${ARGN})
  add_executable(${F_NAME} EXCLUDE_FROM_ALL ${F_SOURCES})
  add_dependencies(fuzzers ${F_NAME})
  target_include_directories(${F_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${F_NAME} PRIVATE arenite_internal ${F_LIBS})
  target_link_options(${F_NAME} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${F_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # What the fuzzer finds goes to the build folder; the seeds in the sources are only read.
  set(found ${PROJECT_BINARY_DIR}/corpus/${F_NAME})
  file(MAKE_DIRECTORY ${found})
  set(arguments -max_total_time=${ARENITE_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048
    -artifact_prefix=${PROJECT_BINARY_DIR}/${F_NAME}- -print_final_stats=1)
  if(F_MAX_LENGTH)
    list(APPEND arguments -max_len=${F_MAX_LENGTH})
  endif()
  if(F_DICTIONARY)
    list(APPEND arguments -dict=${CMAKE_CURRENT_SOURCE_DIR}/${F_DICTIONARY})
  endif()
  list(APPEND arguments ${found})
  if(F_CORPUS)
    list(APPEND arguments ${CMAKE_CURRENT_SOURCE_DIR}/${F_CORPUS})
  endif()
  math(EXPR limit "${ARENITE_FUZZ_SECONDS} + 120")
  add_test(NAME ${F_NAME} COMMAND ${F_NAME} ${arguments})
  set_tests_properties(${F_NAME} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()
