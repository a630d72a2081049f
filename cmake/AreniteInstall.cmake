# `cmake --install`: the command, the libraries, and what projects find them by. docs/install.md shows the folders.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/arenite)

# Libraries outside of the system's folders are found where they were when this was built: StarPU in build/starpu, too,
# which CMake takes for a part of the project and leaves out.
function(arenite_install_rpath target)
  if(CMAKE_INSTALL_RPATH OR DEFINED CMAKE_INSTALL_RPATH_USE_LINK_PATH)
    return()  # settled by whoever builds
  endif()
  set(starpu ${ARENITE_STARPU_LIBRARY_DIRS})
  list(REMOVE_ITEM starpu ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH ${starpu})
  set_property(TARGET ${target} PROPERTY INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

# ---- the command -------------------------------------------------------------------------------

install(TARGETS arenite_command RUNTIME COMPONENT command)
arenite_install_rpath(arenite_command)
# Where the command looks for it: in the folder lib/arenite beside its own, whatever the machine's libraries have.
if(TARGET arenite_heap_counter)
  cmake_path(SET beside NORMALIZE ${CMAKE_INSTALL_BINDIR}/../lib/arenite)
  install(TARGETS arenite_heap_counter LIBRARY DESTINATION ${beside} COMPONENT command)
endif()

# What its hints and helps name, with links from page to page (src/base/installed.cpp finds them).
install(PROGRAMS ${PROJECT_SOURCE_DIR}/datasets/fetch DESTINATION ${CMAKE_INSTALL_DATADIR}/arenite/datasets COMPONENT command)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.ebnf")

# The command writes its own completions, where the machine that builds it can run it.
set(runs ON)
if((CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR) OR ARENITE_SANITIZE)
  set(runs OFF)
endif()
option(ARENITE_COMPLETIONS "Have the built command write completions of itself for shells" ${runs})
if(ARENITE_COMPLETIONS)
  function(arenite_completion shell folder name)
    set(file ${PROJECT_BINARY_DIR}/completions/${shell}/${name})
    add_custom_command(OUTPUT ${file}
      COMMAND arenite_command completion ${shell} > ${file}.part
      COMMAND ${CMAKE_COMMAND} -E rename ${file}.part ${file}
      DEPENDS arenite_command
      COMMENT "Writing the completions for ${shell}" VERBATIM)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completions/${shell})
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder} COMPONENT command)
    set(completions ${completions} ${file} PARENT_SCOPE)
  endfunction()
  arenite_completion(bash bash-completion/completions arenite)
  arenite_completion(zsh zsh/site-functions _arenite)
  arenite_completion(fish fish/vendor_completions.d arenite.fish)
  add_custom_target(arenite_completions ALL DEPENDS ${completions})
endif()

# ---- the libraries -----------------------------------------------------------------------------

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/arenite DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS arenite EXPORT arenite_cpp ARCHIVE COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT arenite_cpp FILE areniteTargets-cpp.cmake NAMESPACE arenite:: DESTINATION ${package}
  COMPONENT development)
if(TARGET arenite_shared)
  set_target_properties(arenite_shared PROPERTIES EXPORT_NAME c)
  set_target_properties(hamkaas_shared PROPERTIES EXPORT_NAME hamkaas)
  arenite_install_rpath(arenite_shared)
  install(FILES ${PROJECT_SOURCE_DIR}/src/c_api/hamkaas.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/arenite
    COMPONENT development)
  install(TARGETS arenite_shared hamkaas_shared EXPORT arenite_c
    LIBRARY COMPONENT libraries NAMELINK_COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT arenite_c FILE areniteTargets-c.cmake NAMESPACE arenite:: DESTINATION ${package}
    COMPONENT development)
endif()
# Each part has it; all together have it once.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
foreach(component libraries development)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

# ---- find_package ------------------------------------------------------------------------------

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/areniteConfig.cmake.in ${PROJECT_BINARY_DIR}/areniteConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/areniteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/areniteConfig.cmake ${PROJECT_BINARY_DIR}/areniteConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)

# ---- pkg-config --------------------------------------------------------------------------------

# Relative to the file itself, so that a folder may be moved as a whole.
file(RELATIVE_PATH ARENITE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" ARENITE_PC_PREFIX "${ARENITE_PC_PREFIX}")
file(RELATIVE_PATH ARENITE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
# By name and not by `Requires:`, which would hand on what compiling with them needs.
pkg_check_modules(ARENITE_OTHERS REQUIRED zlib libcrypto spdlog)
set(linked ${ARENITE_STARPU_LDFLAGS} ${ARENITE_HWLOC_LDFLAGS} ${ARENITE_LIBXSMM_LDFLAGS} -lxsmmnoblas
  ${ARENITE_HIGHWAY_LDFLAGS} ${ARENITE_SLEEF_LDFLAGS}
  ${ARENITE_OTHERS_LDFLAGS})
if(ARENITE_HAVE_CUDA)
  list(APPEND linked -L${CUDAToolkit_LIBRARY_DIR} -lcudart -lcublasLt)
endif()
if(ARENITE_HAVE_CUDNN)
  cmake_path(GET ARENITE_CUDNN_LIBRARY PARENT_PATH folder)
  list(APPEND linked -L${folder} -lcudnn)
endif()
list(TRANSFORM CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES PREPEND -L OUTPUT_VARIABLE system)
list(REMOVE_ITEM linked ${system})
list(REMOVE_DUPLICATES linked)
list(JOIN linked " " ARENITE_PC_LIBS)
set(modules arenite)
if(TARGET arenite_shared)
  list(APPEND modules arenite-c)
endif()
foreach(module ${modules})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
