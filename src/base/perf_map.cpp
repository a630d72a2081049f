#include "src/base/perf_map.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/process_start.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <sstream>

namespace arenite {
namespace {

/// What the environment says; none: nothing.
std::optional<bool> wanted() {
  const char* text = std::getenv("ARENITE_PERF_MAP");
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view value = text;
  if (value != "0" && value != "1") {
    fail({.found = "ARENITE_PERF_MAP='" + std::string(value) + "'",
          .expected = "1, to name kernels for perf, or 0"});
  }
  return value == "1";
}

/// Of an earlier process with the same number, whose names would be wrong here.
bool is_left_over(const struct stat& file) {
  const std::optional<double> started = process_start();
  if (!started) return false;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const double age = static_cast<double>(now.tv_sec - file.st_mtim.tv_sec) +
                     static_cast<double>(now.tv_nsec - file.st_mtim.tv_nsec) * 1e-9;
  return age > since_boot() - *started + 0.1;  // the start is rounded
}

std::string line(const PerfMap::Entry& entry) {
  std::ostringstream text;
  text << std::hex << reinterpret_cast<std::uintptr_t>(entry.code) << ' ' << entry.size << ' ';
  std::string name = entry.name;
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.str() + name + '\n';
}

}  // namespace

PerfMap::~PerfMap() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool PerfMap::on() {
  const std::optional<bool> said = wanted();
  const std::lock_guard lock(mutex_);
  return said.value_or(asked_);
}

void PerfMap::turn_on() {
  const std::optional<bool> said = wanted();
  const std::lock_guard lock(mutex_);
  if (said && !*said) return;
  open();
  asked_ = true;
}

/// Anybody may have put something under this name into a folder for all.
void PerfMap::open() {
  if (descriptor_ >= 0) return;
  const auto refuse = [&](const std::string& found) {
    throw Failure({.found = found,
                   .expected = "a file of one's own, in which perf looks for the names of kernels",
                   .where = file_.string(),
                   .hint = "remove what is there, or set ARENITE_PERF_MAP=0"});
  };
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int opened = ::open(file_.c_str(), flags, 0600);
  if (opened < 0) refuse(system_reason());
  descriptor_ = opened;
  struct stat file {};
  const bool ours = ::fstat(opened, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1 &&
                    file.st_uid == ::geteuid();
  if (ours && (!is_left_over(file) || ::ftruncate(opened, 0) == 0)) return;
  ::close(opened);
  descriptor_ = -1;
  refuse("something that is not this process's own");
}

void PerfMap::add(std::span<const Entry> entries) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  std::string text;
  std::set<const void*> named = named_;
  for (const Entry& entry : entries) {
    if (named.insert(entry.code).second) text += line(entry);
  }
  open();
  if (const std::size_t left = append(descriptor_, text); left > 0) {
    throw Failure({.found = "names for perf not written: " + system_reason(),
                   .expected = "room for " + std::to_string(left) + " more bytes",
                   .where = file_.string(),
                   .hint = "ARENITE_PERF_MAP=0 does without"});
  }
  named_ = std::move(named);
}

void PerfMap::add(const void* code, std::size_t size, std::string_view name) {
  const Entry entry{.code = code, .size = size, .name = std::string(name)};
  add({&entry, 1});
}

PerfMap& perf_map() {
  static PerfMap instance("/tmp/perf-" + std::to_string(::getpid()) + ".map");
  return instance;
}

}  // namespace arenite
