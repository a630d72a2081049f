// A random program on the real runtime.
#pragma once

#include <arenite/operators.hpp>
#include <arenite/runtime/session.hpp>

#include "tests/oracle/executor.hpp"

namespace arenite::oracle {

struct RuntimeTrace {
  Trace steps;  ///< with a wait after every step
  Trace crews;  ///< the same steps, each carried out by a crew
  Seen ahead;   ///< the last step of a second run, all of it submitted before the first wait
};

RuntimeTrace run_on(runtime::Session& session, const RandomProgram& program,
                    const runtime::ProgramOptions& options = {},
                    const runtime::KernelTable& table = kernels());

}  // namespace arenite::oracle
