// Files that are whole or not there.
#pragma once

#include <filesystem>
#include <string_view>

namespace arenite::plan {

/// Writes beside `file` under a temporary name, then renames. Throws Error when that fails, and
/// leaves nothing behind.
void write_file(const std::filesystem::path& file, std::string_view contents);

}  // namespace arenite::plan
