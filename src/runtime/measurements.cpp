#include "src/runtime/measurements.hpp"

#include <arenite/error.hpp>

#include "src/base/private_folder.hpp"
#include "src/runtime/environment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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

bool ends_a_line(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() == '\n';
}

/// The two kinds of files of which StarPU asserts that it can read them; the others it writes anew.
void remove_cut_off(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() != ".config" && path.extension() != ".affinity") continue;
    std::error_code ignored;
    if (!ends_a_line(path)) fs::remove(path, ignored);
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

MeasurementsLock::MeasurementsLock(const fs::path& folder)
    : file_(
          ::open((folder / "bus" / "arenite.lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0666)) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0 &&
         (errno == EWOULDBLOCK || errno == EINTR) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(2ms);
  remove_cut_off(folder / "bus");
}

MeasurementsLock::~MeasurementsLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace arenite::runtime
