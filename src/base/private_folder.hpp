// Folders for files that can be made again.
#pragma once

#include <filesystem>
#include <optional>

namespace arenite {

/// This user's folder in the system's temporary folder. Only names it.
std::filesystem::path temporary_folder();

/// Makes that folder or finds it made; false unless it is this user's and closed to others: anyone
/// may create names beside it.
bool make_temporary_folder();

/// Makes the folder or finds it made; false where it does not take new files.
bool make_writable(const std::filesystem::path& folder);

/// Whether $ARENITE_CACHE says where files are kept.
bool cache_is_named();

/// $ARENITE_CACHE, or this user's by the XDG specification. Only names it.
std::filesystem::path cache_folder();

/// `name` in that folder, to read what is nobody's but this user's; none where the folder is one
/// that anyone may have made. Makes nothing.
std::optional<std::filesystem::path> own_cache(const std::filesystem::path& name);

/// `name` in the first cache folder, which is for files that can be made again, that can be
/// written; created. $ARENITE_CACHE is taken at its
/// word; otherwise a home that cannot be written gives way to the system's temporary folder.
std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& name);

}  // namespace arenite
