// Folders for files that can be made again.
#pragma once

#include <filesystem>

namespace arenite {

/// This user's folder in the system's temporary folder. Only names it.
std::filesystem::path temporary_folder();

/// Makes that folder or finds it made; false unless it is this user's and closed to others: anyone
/// may create names beside it.
bool make_temporary_folder();

/// Makes the folder or finds it made; false where it does not take new files.
bool make_writable(const std::filesystem::path& folder);

}  // namespace arenite
