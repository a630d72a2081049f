// The one exception type of the library; `Failure` marks what no other input would have mended.
//
// A message says what was found, what was expected, where, and gives a hint. Wrong input is
// reported while building (graph, plan, program); what only a step can know goes through the status
// word.
#pragma once

#include <stdexcept>
#include <string>

namespace arenite {

struct ErrorText {
  std::string found;     ///< what was met, e.g. "kernel 5x5 larger than the padded input 4x4"
  std::string expected;  ///< what would have been right
  std::string where;     ///< op and value names, file:line, byte offset
  std::string hint;      ///< how to mend it
};

class Error : public std::runtime_error {
 public:
  explicit Error(const ErrorText& text);

  const ErrorText& text() const noexcept { return text_; }

 private:
  ErrorText text_;
};

/// The input was right, but the run could not go on: memory refused, StarPU refused, nobody reads
/// the output.
class Failure : public Error {
 public:
  using Error::Error;
};

/// Throws Error; reads better than `throw` in the middle of an expression.
[[noreturn]] void fail(ErrorText text);

}  // namespace arenite
