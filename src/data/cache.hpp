// The folder for files that can be made again.
#pragma once

#include <filesystem>

namespace arenite::data {

/// `name` in the first cache folder that can be written, created. $ARENITE_CACHE is taken at its
/// word; otherwise a home that cannot be written gives way to the system's temporary folder. Throws
/// Error.
std::filesystem::path writable_cache(const std::filesystem::path& name);

}  // namespace arenite::data
