#include "src/cli/run_command.hpp"

#include <arenite/error.hpp>

#include "src/base/stack.hpp"
#include "src/cli/command_line.hpp"
#include "src/cli/output.hpp"

#include <cstddef>
#include <iostream>
#include <new>

namespace arenite::cli {

int run_command(const Command& command, int argc, const char* const* argv) {
  const auto complain = [&](const std::string& message, int status) {
    std::cout << std::flush;
    std::cerr << command.name << ": " << message << '\n';
    return status;
  };
  const Asked asked = read_command_line(command, argc, argv);
  if (asked.status != exit_ok) return complain(asked.text, asked.status);
  try {
    std::cout << asked.text;
    int status = exit_ok;
    if (asked.command != nullptr) {
      // On a thread of its own where `ulimit -s` leaves less.
      constexpr std::size_t enough_stack = std::size_t{1} << 20;
      with_stack(enough_stack, [&] { status = asked.command->run(); });
    }
    flush_output();
    return status;
  } catch (const Failure& error) {
    return complain(error.what(), exit_failure);
  } catch (const Error& error) {
    return complain(error.what(), exit_bad_input);
  } catch (const std::bad_alloc&) {
    return complain("no memory left (hint: `ulimit -v`, a container's limit, or the machine's)",
                    exit_failure);
  } catch (const std::exception& error) {
    return complain(error.what(), exit_failure);
  }
}

}  // namespace arenite::cli
