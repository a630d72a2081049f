// Names of code that is made at run time, where Linux's perf looks for them: /tmp/perf-PID.map, a
// line "address size name" each, in hexadecimal (tools/perf/Documentation/jit-interface.txt).
//
// Off, unless ARENITE_PERF_MAP=1 is in the environment or the program turns it on. The file is its
// user's alone, grows by whole lines, and stays when the process ends: perf reads it afterwards.
// Any thread may call these functions; they lock and may allocate, so call them while programs are
// built.
#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace arenite {

class PerfMap {
 public:
  struct Entry {
    const void* code = nullptr;
    std::size_t size = 0;  ///< bytes
    std::string name;      ///< of one line: what else there is in it becomes spaces
  };

  explicit PerfMap(std::filesystem::path file) : file_(std::move(file)) {}
  ~PerfMap();
  PerfMap(const PerfMap&) = delete;
  PerfMap& operator=(const PerfMap&) = delete;

  /// Throws Error where ARENITE_PERF_MAP is neither 0 nor 1.
  bool on();

  /// Unless ARENITE_PERF_MAP=0 forbids it; creates the file. Throws Error as `on`, and Failure
  /// where the file cannot be written or is somebody else's.
  void turn_on();

  /// Where it is on; all of it or, where the disk is full, nothing. What has a name keeps it.
  /// Throws as `turn_on`.
  void add(std::span<const Entry> entries);
  void add(const void* code, std::size_t size, std::string_view name);

  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  void open();

  std::filesystem::path file_;
  std::mutex mutex_;
  bool asked_ = false;  // for, by the program
  int descriptor_ = -1;
  std::set<const void*> named_;
};

/// The one that perf reads of this process.
PerfMap& perf_map();

}  // namespace arenite
