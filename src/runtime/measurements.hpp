// What StarPU measures of the machine: files that it reads and writes as it starts.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace arenite::runtime {

/// StarPU's own folder where it can be written, else one that is thrown away some day: measuring
/// the machine's memory once more takes some 20 ms. Throws Error where there is none.
std::string measurements_folder();

/// Held while StarPU starts: processes that do so at the same time read files that others are still
/// writing, and StarPU ends the process on what it cannot read. Removes what one that was killed,
/// or a full disk, left cut off. Waits `most` for another process, and goes on without the lock
/// then, removing nothing; not at all where the folder's file system has no locks.
class MeasurementsLock {
 public:
  explicit MeasurementsLock(const std::filesystem::path& folder,
                            std::chrono::milliseconds most = std::chrono::seconds(10));
  ~MeasurementsLock();
  MeasurementsLock(const MeasurementsLock&) = delete;
  MeasurementsLock& operator=(const MeasurementsLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace arenite::runtime
