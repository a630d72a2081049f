// What a random program has in it, counted, so that a test can say that nothing is missing.
#pragma once

#include <map>
#include <string>

#include "tests/oracle/random_program.hpp"

namespace arenite::oracle {

using Features = std::map<std::string, std::int64_t>;

/// Adds those of the program; operators and kernels count as "op <name>", "kernel <op>/<name>".
void count_features(const RandomProgram& program, Features& into);

}  // namespace arenite::oracle
