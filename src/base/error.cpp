#include <arenite/error.hpp>

namespace arenite {
namespace {

std::string compose(const ErrorText& text) {
  std::string message;
  if (!text.where.empty()) message += text.where + ": ";
  message += text.found;
  if (!text.expected.empty()) message += "; expected " + text.expected;
  if (!text.hint.empty()) message += " (hint: " + text.hint + ")";
  return message;
}

}  // namespace

Error::Error(const ErrorText& text) : std::runtime_error(compose(text)), text_(text) {}

void fail(ErrorText text) { throw Error(text); }

}  // namespace arenite
