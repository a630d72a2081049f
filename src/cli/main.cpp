#include "src/cli/commands.hpp"
#include "src/cli/run_command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace {

/// Fills those of descriptors 0 to 2 that the process was started without, so that no file that is
/// opened later gets their number, and with it what is printed. Reading and writing them still
/// fails. Must come before anything opens a file.
void fill_standard_descriptors() noexcept {
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    // The lowest free number is this one. A path alone can be neither read nor written, and a
    // folder is never taken for a file that an option names.
    if (::open("/", O_PATH | O_DIRECTORY) < 0) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace arenite;
  fill_standard_descriptors();
  // What cannot be written, for want of a reader or beyond a limit, is an error and no reason to
  // die.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  cli::Command app("arenite",
                   "Arenite trains neural networks with their memory planned and proven before the "
                   "first step");
  cli::Arguments arguments;
  cli::add_commands(app, arguments);
  return cli::run_command(app, argc, argv);
}
