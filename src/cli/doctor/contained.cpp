#include "src/cli/doctor/contained.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/cli/doctor/surroundings.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace arenite::cli::doctor {
namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const noexcept { return ends_[0] >= 0; }
  int reader() const noexcept { return ends_[0]; }
  int writer() const noexcept { return ends_[1]; }
  void close(std::size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

Finding thrown(const ErrorText& text) {
  Finding finding;
  finding.says = "stopped by an error";
  finding.fails(text);
  return finding;
}

Finding tried(const std::function<Finding()>& check) {
  try {
    return check();
  } catch (const Error& error) {
    return thrown(for_a_check(error));
  } catch (const std::bad_alloc&) {
    return thrown({.found = "the system refused memory",
                   .expected = "memory for the check",
                   .hint = more_memory()});
  } catch (const std::exception& error) {
    return thrown({.found = error.what(),
                   .expected = "a check that comes to its end",
                   .hint = what_to_try()});
  }
}

/// In a check: what it contains belongs to its group of processes, and ends with it.
bool inside = false;

[[noreturn]] void run_in_child(const std::function<Finding()>& check, const Pipe& answer,
                               const Pipe& words, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before that
  if (!inside) ::setpgid(0, 0);           // to be ended with all that it starts
  inside = true;
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::dup2(words.writer(), STDOUT_FILENO);
  ::dup2(words.writer(), STDERR_FILENO);
  const std::string text = line_of(to_json(tried(check)));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(answer.writer(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    done += static_cast<std::size_t>(written);
  }
  ::_exit(0);
}

/// All that the child says until it has answered, or the deadline.
struct Heard {
  std::string answer, words;
  bool in_time = false;
};

/// False at the end, and where there is nothing now.
bool read_some(int end, std::string& into) {
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(end, bytes.data(), bytes.size());
  if (got > 0) into.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

Heard listen(const Pipe& answer, const Pipe& words, Clock::time_point deadline) {
  Heard heard;
  std::array<pollfd, 2> ends{{{answer.reader(), POLLIN, 0}, {words.reader(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&heard.answer, &heard.words};
  // The answer is a line. Who else holds its other end may never close it.
  while (ends[0].fd >= 0 && !heard.answer.ends_with('\n')) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return heard;
    if (::poll(ends.data(), ends.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return heard;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      if (!read_some(ends[i].fd, *texts[i])) ends[i].fd = -1;
    }
    constexpr std::size_t enough = std::size_t{1} << 16;  // of words: the last ones count
    if (heard.words.size() > enough) heard.words.erase(0, heard.words.size() - enough);
  }
  heard.in_time = true;
  ::fcntl(words.reader(), F_SETFL, O_NONBLOCK);
  while (read_some(words.reader(), heard.words)) {
  }
  return heard;
}

/// The status with which a process ended. None: it cannot be ended, as where a disk that is gone
/// keeps it.
std::optional<int> reap(pid_t child, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if ((ended < 0 && errno != EINTR) || Clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> last_lines(std::string_view text) {
  constexpr std::size_t most = 6;
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty()) lines.emplace_back(line.substr(0, 200));
  }
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - most);
  return lines;
}

std::string how_it_ended(const Heard& heard, const std::optional<int>& status,
                         std::chrono::milliseconds limit) {
  if (!heard.in_time)
    return fmt::format("no answer within {:g} s", static_cast<double>(limit.count()) * 1e-3);
  if (status && WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    return fmt::format("it was ended by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("it ended the process{}",
                     status ? fmt::format(" with status {}", WEXITSTATUS(*status)) : "");
}

}  // namespace

Finding contained(const std::function<Finding()>& check, std::chrono::milliseconds limit) {
  Pipe answer, words;
  const pid_t parent = ::getpid();
  const pid_t child = answer.open() && words.open() ? ::fork() : -1;
  if (child < 0) {
    return thrown({.found = "no process could be started: " + system_reason(),
                   .expected = "room for one more process and its pipes",
                   .hint = "raise `ulimit -u` and `ulimit -n`"});
  }
  if (child == 0) run_in_child(check, answer, words, parent);
  if (!inside) {
    ::setpgid(child, child);  // whoever of the two is first
    end_with_interrupts(child);
  }
  answer.close(1);
  words.close(1);
  const Heard heard = listen(answer, words, Clock::now() + limit);
  if (!heard.in_time) ::kill(child, SIGKILL);
  const std::optional<int> status = reap(child, std::chrono::seconds(2));
  if (!inside) {
    ::kill(-child, SIGKILL);  // what it left behind
    end_with_interrupts(0);
  }
  if (heard.in_time && status == 0) {
    try {
      return from_json(parse_json(heard.answer));
    } catch (const Error&) {
      // Then it ended before it had said all.
    }
  }
  Finding finding;
  finding.says = how_it_ended(heard, status, limit);
  finding.details = last_lines(heard.words);
  const bool illegal = status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGILL;
  finding.fails(finding.says,
                illegal ? "kernels are made for another CPU: see the check cpu" : what_to_try());
  return finding;
}

}  // namespace arenite::cli::doctor
