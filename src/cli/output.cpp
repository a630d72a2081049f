#include "src/cli/output.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"

#include <cstdio>
#include <iostream>

namespace arenite::cli {

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return;
  throw Failure({.found = "the output could not be written: " + system_reason(),
                 .expected = "a standard output that takes it"});
}

}  // namespace arenite::cli
