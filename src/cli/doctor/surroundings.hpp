// What around a process may keep a check from its end, and how to mend that.
#pragma once

#include <arenite/error.hpp>

#include <string>
#include <vector>

namespace arenite::cli::doctor {

/// What of StarPU's the environment sets: "STARPU_NCPU=2".
std::vector<std::string> starpu_settings();

/// How to let this process have more memory, by the limits that bind it.
std::string more_memory();

/// The same text, with a way out that a check has: it has no batch to be made smaller where memory
/// was refused.
ErrorText for_a_check(const Error& error);

/// What to try where a check crashed or hangs: what limits this process, and what StarPU is told.
std::string what_to_try();

}  // namespace arenite::cli::doctor
