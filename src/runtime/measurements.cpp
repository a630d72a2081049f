#include "src/runtime/measurements.hpp"

#include <arenite/error.hpp>

#include "src/base/private_folder.hpp"
#include "src/runtime/environment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <thread>

namespace arenite::runtime {
namespace {

namespace fs = std::filesystem;

/// StarPU looks into these folders, and writes into the first what the others lack.
bool takes_measurements(const fs::path& folder) {
  return make_writable(folder) && make_writable(folder / "bus") &&
         make_writable(folder / "codelets") && make_writable(folder / "debug");
}

/// As StarPU names its files.
std::string host() {
  std::string name = environment("STARPU_HOSTNAME");
  if (name.empty()) {
    std::array<char, 256> own{};
    ::gethostname(own.data(), own.size() - 1);
    name = own.data();
  }
  return name.substr(0, name.find('.'));
}

bool ends_a_line(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() == '\n';
}

/// The two files of which StarPU asserts that it can read them; the others it writes anew.
void remove_cut_off(const fs::path& bus) {
  for (const char* kind : {".config", ".affinity"}) {
    const fs::path path = bus / (host() + kind);
    std::error_code ignored;
    if (fs::exists(path, ignored) && !ends_a_line(path)) fs::remove(path, ignored);
  }
}

}  // namespace

std::string measurements_folder() {
  if (const std::string chosen = environment("STARPU_PERF_MODEL_DIR"); !chosen.empty()) {
    if (takes_measurements(chosen)) return chosen;
    fail({.found = "STARPU_PERF_MODEL_DIR='" + chosen + "', which cannot be written",
          .expected = "a writable folder"});
  }
  for (const char* name : {"XDG_CACHE_HOME", "STARPU_HOME", "HOME"}) {
    const fs::path home = environment(name);
    if (!home.is_absolute()) continue;
    const fs::path folder = home / ".starpu" / "sampling";
    if (takes_measurements(folder)) return folder;
    break;
  }
  const fs::path folder = temporary_folder() / "starpu";
  if (make_temporary_folder() && takes_measurements(folder)) return folder;
  fail({.found = "no folder for StarPU's measurements: neither the home folder nor " +
                 folder.string() + " can be written",
        .expected = "a writable folder",
        .hint = "set STARPU_PERF_MODEL_DIR to one"});
}

MeasurementsLock::MeasurementsLock(const fs::path& folder, std::chrono::milliseconds most) {
  const fs::path path = folder / "bus" / "arenite.lock";
  // Network file systems lock what is open for writing; the file may be another user's.
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + most;
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) break;
    if (std::chrono::steady_clock::now() > end) return;  // what it is writing is not cut off
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  remove_cut_off(folder / "bus");
}

MeasurementsLock::~MeasurementsLock() {
  if (file_ < 0) return;
  ::flock(file_, LOCK_UN);  // a child that was forked meanwhile has the file, too
  ::close(file_);
}

}  // namespace arenite::runtime
