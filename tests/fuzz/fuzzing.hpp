// What all fuzzers here ask of whatever they call: an answer, or an Error that helps.
#pragma once

#include <arenite/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace arenite::fuzzing {

/// Ends the process, as libFuzzer expects of a finding.
[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

inline void require(bool condition, const std::string& what) {
  if (!condition) finding(what);
}

/// Whether the action came to its end; if not, its Error must say what it met, what would have been
/// right, and where. Any other exception is a finding.
template <class Action>
bool accepted(Action action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    const ErrorText& text = error.text();
    require(!text.found.empty() && !text.expected.empty() && !text.where.empty(),
            std::string("an error that says too little: ") + error.what());
    return false;
  }
}

}  // namespace arenite::fuzzing
