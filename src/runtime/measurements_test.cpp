#include "src/runtime/measurements.hpp"

#include <arenite/error.hpp>
#include <arenite/runtime/session.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/testing.hpp"
#include "src/runtime/environment.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace arenite::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* variable = "STARPU_PERF_MODEL_DIR";

/// A home of its own; no other folder is named.
struct Measurements : ::testing::Test {
  Measurements() {
    std::string name = (fs::temp_directory_path() / "arenite-test-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    for (const char* other : {variable, "XDG_CACHE_HOME", "STARPU_HOME"}) outer.hide(other);
    outer.set("HOME", (folder / "home").string());
    outer.set("TMPDIR", folder.string());
  }
  ~Measurements() override {
    std::error_code error;
    fs::remove_all(folder, error);
  }

  /// Not even root makes a folder below a file.
  fs::path blocked() {
    std::ofstream(folder / "file") << "x";
    return folder / "file" / "below";
  }
  std::string temporary() {
    return (folder / ("arenite-" + std::to_string(::geteuid())) / "starpu").string();
  }

  fs::path folder;
  LentVariables outer;
};

TEST_F(Measurements, AreKeptWhereStarpuDoes) {
  EXPECT_EQ(measurements_folder(), folder / "home/.starpu/sampling");
  outer.set("STARPU_HOME", (folder / "starpu").string());
  EXPECT_EQ(measurements_folder(), folder / "starpu/.starpu/sampling");
  outer.set(variable, (folder / "mine").string());
  EXPECT_EQ(measurements_folder(), folder / "mine");
  EXPECT_TRUE(fs::is_directory(folder / "mine" / "bus"));
}

TEST_F(Measurements, NeedNoHome) {
  outer.set("HOME", blocked().string());
  EXPECT_EQ(measurements_folder(), temporary());
  outer.hide("HOME");
  EXPECT_EQ(measurements_folder(), temporary());
  fs::permissions(fs::path(temporary()).parent_path(), fs::perms{0777});  // no longer ours alone
  EXPECT_THROW(measurements_folder(), Error);
}

TEST_F(Measurements, NeedAFolderThatCanBeWritten) {
  outer.set(variable, blocked().string());
  EXPECT_ERROR("STARPU_PERF_MODEL_DIR='" + blocked().string(), measurements_folder());
}

// StarPU itself would end the process.
TEST_F(Measurements, LetStarpuStartWithoutAHome) {
  outer.set("HOME", blocked().string());
  const Session session({.workers = 1});
  EXPECT_EQ(session.workers(), 1);
  EXPECT_TRUE(fs::is_directory(temporary()));
}

TEST_F(Measurements, AreMadeAgainWhereTheyWereCutOff) {
  { const Session session({.workers = 1}); }
  const fs::path bus = fs::path(measurements_folder()) / "bus";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(bus)) {
    if (entry.file_size() > 0) files.push_back(entry);  // not the lock
  }
  EXPECT_GE(files.size(), 4U);
  for (const fs::path& file : files) {
    for (const std::uintmax_t bytes : {std::uintmax_t{0}, fs::file_size(file) / 2}) {
      SCOPED_TRACE(file.filename().string() + ", " + std::to_string(bytes) + " bytes");
      fs::resize_file(file, bytes);
      const Session session({.workers = 1});
      EXPECT_EQ(session.workers(), 1);
    }
  }
}

TEST_F(Measurements, AreOfOneProcessAtATime) {
  const std::string where = measurements_folder();
  std::optional<MeasurementsLock> first(where);
  std::future<void> second =
      std::async(std::launch::async, [&] { const MeasurementsLock lock(where); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  first.reset();
  EXPECT_EQ(second.wait_for(std::chrono::seconds(9)), std::future_status::ready);
}

TEST_F(Measurements, AreLeftAloneWhileAnotherWritesThem) {
  { const Session session({.workers = 1}); }
  const fs::path where = measurements_folder();
  std::vector<fs::path> configs;
  for (const auto& entry : fs::directory_iterator(where / "bus")) {
    if (entry.path().extension() == ".config") configs.push_back(entry);
  }
  ASSERT_EQ(configs.size(), 1U);
  const MeasurementsLock writer(where);
  fs::resize_file(configs[0], 0);
  { const MeasurementsLock other(where, std::chrono::milliseconds(20)); }
  EXPECT_TRUE(fs::exists(configs[0]));
}

TEST_F(Measurements, AreLetGoThoughAChildLivesOn) {
  const std::string where = measurements_folder();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = 0;
  {
    const MeasurementsLock lock(where);
    child = ::fork();
    if (child == 0) {
      char byte = 0;
      ::close(ends[1]);
      ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));  // until the test ends
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  { const MeasurementsLock again(where); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(Measurements, AreNotWaitedForInAFolderWithoutLocks) {
  const auto begin = std::chrono::steady_clock::now();
  { const MeasurementsLock lock(blocked()); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

}  // namespace
}  // namespace arenite::runtime
