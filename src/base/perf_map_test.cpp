#include "src/base/perf_map.hpp"

#include <arenite/error.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace arenite {
namespace {

namespace fs = std::filesystem;

class PerfMaps : public ::testing::Test {
 protected:
  PerfMaps() {
    std::string name = (fs::temp_directory_path() / "arenite-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    file_ = folder_ / "perf-1.map";
    ::unsetenv("ARENITE_PERF_MAP");
  }
  ~PerfMaps() override {
    ::unsetenv("ARENITE_PERF_MAP");
    fs::remove_all(folder_);
  }

  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static std::string refused(PerfMap& map) {
    try {
      map.turn_on();
      map.add(nullptr, 1, "x");
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  }

  fs::path folder_, file_;
};

const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

TEST_F(PerfMaps, AreOffUnlessAskedFor) {
  PerfMap map(file_);
  EXPECT_FALSE(map.on());
  map.add(at(0x1000), 16, "x");
  EXPECT_FALSE(fs::exists(file_));
  ::setenv("ARENITE_PERF_MAP", "0", 1);
  map.turn_on();
  EXPECT_FALSE(map.on());
  EXPECT_FALSE(fs::exists(file_));
  ::unsetenv("ARENITE_PERF_MAP");
  map.turn_on();
  EXPECT_TRUE(map.on());
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(PerfMaps, HoldALineANameAndNothingTwice) {
  ::setenv("ARENITE_PERF_MAP", "1", 1);
  PerfMap map(file_);
  map.add(at(0x7f00aa000), 0x1f0, "xsmm gemm m64 n14 k32");
  map.add(at(0x7f00ab000), 22, "two\nlines\tand a tab");
  map.add(at(0x7f00aa000), 0x1f0, "another name");
  EXPECT_EQ(text(), "7f00aa000 1f0 xsmm gemm m64 n14 k32\n7f00ab000 16 two lines and a tab\n");
  struct stat found {};
  ASSERT_EQ(::stat(file_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(PerfMaps, GoOnBehindWhatThisProcessHasWritten) {
  ::setenv("ARENITE_PERF_MAP", "1", 1);
  std::ofstream(file_) << "10 20 by somebody else here\n";  // CPython names its functions there
  PerfMap map(file_);
  map.add(at(0x30), 4, "x");
  EXPECT_EQ(text(), "10 20 by somebody else here\n30 4 x\n");
}

TEST_F(PerfMaps, ForgetAnEarlierProcessOfTheSameNumber) {
  ::setenv("ARENITE_PERF_MAP", "1", 1);
  std::ofstream(file_) << "10 20 long ago\n";
  const timeval then{.tv_sec = std::time(nullptr) - 86'400, .tv_usec = 0};
  ASSERT_EQ(::utimes(file_.c_str(), std::array{then, then}.data()), 0);
  PerfMap map(file_);
  map.add(at(0x30), 4, "x");
  EXPECT_EQ(text(), "30 4 x\n");
}

TEST_F(PerfMaps, RefuseWhatIsNotTheirs) {
  const std::string mine = file_.string() +
                           ": something that is not this process's own; expected a file of one's "
                           "own, in which perf looks for the names of kernels (hint: remove what "
                           "is there, or set ARENITE_PERF_MAP=0)";
  PerfMap map(file_);
  std::ofstream(folder_ / "precious") << "of somebody\n";
  fs::create_hard_link(folder_ / "precious", file_);
  EXPECT_EQ(refused(map), mine);
  fs::remove(file_);
  fs::create_symlink("precious", file_);
  EXPECT_NE(refused(map).find("Too many levels of symbolic links"), std::string::npos);
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_NE(refused(map).find("No such device or address"), std::string::npos);  // and no waiting
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_NE(refused(map).find("Is a directory"), std::string::npos);
  fs::remove(file_);
  EXPECT_EQ(refused(map), "taken");
  std::ifstream in(folder_ / "precious");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "of somebody\n");
}

TEST_F(PerfMaps, RefuseAnotherValue) {
  for (const char* value : {"2", "yes", "1 "}) {
    ::setenv("ARENITE_PERF_MAP", value, 1);
    PerfMap map(file_);
    EXPECT_EQ(refused(map), "ARENITE_PERF_MAP='" + std::string(value) +
                                "'; expected 1, to name kernels for perf, or 0");
    EXPECT_THROW(map.on(), Error);
  }
}

TEST_F(PerfMaps, SayThatTheDiskIsFull) {
  ::setenv("ARENITE_PERF_MAP", "1", 1);
  PerfMap map(file_);
  map.add(at(0x10), 4, "x");
  // No more than what is there.
  const rlimit full{.rlim_cur = 8, .rlim_max = RLIM_INFINITY};
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &full);
  std::string why = "taken";
  try {
    map.add(at(0x20), 4, "a name that is longer than that");
  } catch (const Failure& failure) {
    why = failure.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(why.find("names for perf not written: File too large"), std::string::npos) << why;
  EXPECT_EQ(text(), "10 4 x\n");
}

TEST(PerfMapOfTheProcess, HasTheNameThatPerfLooksFor) {
  EXPECT_EQ(perf_map().file(), "/tmp/perf-" + std::to_string(::getpid()) + ".map");
}

}  // namespace
}  // namespace arenite
