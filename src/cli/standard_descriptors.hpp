#pragma once

namespace arenite::cli {

/// Fills those of descriptors 0 to 2 that the process was started without, so that no file that is
/// opened later gets their number, and with it what is printed. Reading and writing them still
/// fails. Must come before anything opens a file.
void fill_standard_descriptors() noexcept;

}  // namespace arenite::cli
