#include "src/cli/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace arenite::cli {

void fill_standard_descriptors() noexcept {
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    // The lowest free number is this one. A path alone can be neither read nor written, and a
    // folder is never taken for a file that an option names.
    if (::open("/", O_PATH | O_DIRECTORY) < 0) return;
  }
}

}  // namespace arenite::cli
