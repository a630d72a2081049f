#pragma once

#include <string>
#include <vector>

namespace arenite::cli {

/// "--log", "train.jsonl": a file that a command reads or writes, and who says so.
struct NamedFile {
  std::string who;
  std::string path;  ///< empty: none
};

/// Throws Error where two of them are the same regular file, or would be: one would replace the
/// other. Devices and pipes may be shared.
void refuse_shared_files(const std::vector<NamedFile>& files);

}  // namespace arenite::cli
