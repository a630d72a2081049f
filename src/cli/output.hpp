// What commands print and write.
#pragma once

#include "src/base/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace arenite::cli {

/// JSON on one line. What is no UTF-8, as a path may be, has U+FFFD in its place; numbers that are
/// none are null.
std::string line_of(const Json& json);

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// Throws Failure where standard output takes no more: what was not written was not reported.
void flush_output();

/// "--log", "train.jsonl": a file that a command reads or writes, and who says so.
struct NamedFile {
  std::string who;
  std::string path;  ///< empty: none
};

/// Throws Error where two of them are the same regular file, or would be: one would replace the
/// other. Devices and pipes may be shared.
void refuse_shared_files(const std::vector<NamedFile>& files);

}  // namespace arenite::cli
