# ARENITE_PYTHON: any Python, for tests. ARENITE_NUMPY_PYTHON: the first one that has NumPy, before which another may
# stand on PATH; where there is none it is the former, and tests that need NumPy say that they were skipped.
find_program(ARENITE_PYTHON python3)
function(arenite_has_numpy result python)
  execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(ARENITE_NUMPY_PYTHON python3 VALIDATOR arenite_has_numpy)
if(NOT ARENITE_NUMPY_PYTHON)
  unset(ARENITE_NUMPY_PYTHON CACHE)  # looked for again the next time
  set(ARENITE_NUMPY_PYTHON ${ARENITE_PYTHON})
endif()
