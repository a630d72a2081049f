#include <arenite/error.hpp>

#include "src/base/stack.hpp"
#include "src/cli/command_line.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <iostream>

namespace {

int complain(const std::string& message, int status) {
  std::cout << std::flush;
  std::cerr << "arenite: " << message << '\n';
  return status;
}

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
  const cli::Asked asked = cli::read_command_line(app, argc, argv);
  if (asked.status != cli::exit_ok) return complain(asked.text, asked.status);
  try {
    std::cout << asked.text;
    int status = cli::exit_ok;
    if (asked.command != nullptr) {
      // On a thread of its own where `ulimit -s` leaves less.
      constexpr std::size_t enough_stack = std::size_t{1} << 20;
      with_stack(enough_stack, [&] { status = asked.command->run(); });
    }
    cli::flush_output();
    return status;
  } catch (const Failure& error) {
    return complain(error.what(), cli::exit_failure);
  } catch (const Error& error) {
    return complain(error.what(), cli::exit_bad_input);
  } catch (const std::exception& error) {
    return complain(error.what(), cli::exit_failure);
  }
}
