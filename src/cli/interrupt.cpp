#include "src/cli/interrupt.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "src/cli/commands.hpp"

namespace arenite::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may take no lock");

/// A group of processes that an interrupt ends, too; 0: none.
std::atomic<pid_t> helpers{0};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a handler may take no lock");

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
// A terminal's line holds a progress bar and the ^C itself.
std::string_view message;
constexpr std::string_view on_terminal =
    "\narenite: interrupted: training ends after the step under way, then follows the test "
    "accuracy; a second interrupt ends the process at once\n";
constexpr std::string_view elsewhere = on_terminal.substr(1);

/// Calls only what a handler may.
void on_signal(int /*signal*/) {
  const int saved = errno;
  flag.store(true, std::memory_order_relaxed);
  for (const int number : signals) ::signal(number, SIG_DFL);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  errno = saved;
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  // Else a write that waits for a slow reader would fail instead of going on.
  action.sa_flags = SA_RESTART;
  for (const int number : signals) ::sigaddset(&action.sa_mask, number);
  for (const int number : signals) {
    struct sigaction before {};
    // As nohup has it.
    const bool is_ignored = number == SIGHUP && ::sigaction(number, nullptr, &before) == 0 &&
                            before.sa_handler == SIG_IGN;
    if (!is_ignored) ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

void catch_interrupts() {
  message = ::isatty(STDERR_FILENO) != 0 ? on_terminal : elsewhere;
  install(on_signal);
}

void exit_on_interrupts() {
  install([](int /*signal*/) {
    if (const pid_t group = helpers.load(std::memory_order_relaxed); group > 0)
      ::kill(-group, SIGKILL);
    ::_exit(exit_interrupted);
  });
}

void end_with_interrupts(pid_t group) noexcept { helpers.store(group, std::memory_order_relaxed); }

const std::atomic<bool>& interrupted() noexcept { return flag; }

}  // namespace arenite::cli
