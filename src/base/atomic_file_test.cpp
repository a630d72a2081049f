#include "src/base/atomic_file.hpp"

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace arenite {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

struct AtomicFileTest : ::testing::Test {
  fs::path folder;

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "arenite-atomic-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder), {}); }
};

TEST_F(AtomicFileTest, ReplacesAFileWhenItIsWhole) {
  const fs::path path = folder / "f";
  std::ofstream(path) << "older";
  ::chmod(path.c_str(), 0640);
  {
    AtomicFile file(path);
    file.write("first\n");
    EXPECT_EQ(text_of(path), "older");
    file.commit();
    EXPECT_EQ(text_of(path), "first\n");
    file.write("second\n");
    file.commit();
    EXPECT_EQ(text_of(path), "first\nsecond\n");
  }
  EXPECT_EQ(text_of(path), "first\nsecond\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, LeavesAllAsItWasWithoutCommit) {
  const fs::path path = folder / "f";
  { AtomicFile(path).write("lost"); }
  EXPECT_EQ(entries(), 0);
  std::ofstream(path) << "older";
  { AtomicFile(path).write("lost"); }
  EXPECT_EQ(text_of(path), "older");
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, FollowsLinks) {
  fs::create_directory(folder / "far");
  fs::create_symlink("far/f", folder / "link");
  for (const char* text : {"made", "replaced"}) {
    write_file(folder / "link", text);
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(text_of(folder / "far" / "f"), text);
  }
}

TEST_F(AtomicFileTest, WritesDevicesAndPipesDirectly) {
  AtomicFile("/dev/null").write("gone");
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { write_file(pipe, "to nobody"); }),
            pipe.string() +
                ": cannot open it: No such device or address; expected a pipe that somebody reads");
  std::FILE* reader = ::fdopen(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK), "r");
  AtomicFile::check(pipe, "a pipe");
  write_file(pipe, "through\n");
  char line[16];
  EXPECT_STREQ(std::fgets(line, sizeof line, reader), "through\n");
  std::fclose(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, SharesTheStandardOutput) {
  const fs::path path = folder / "out";
  const int saved = ::dup(STDOUT_FILENO);
  const int out = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  std::fflush(stdout);
  ::dup2(out, STDOUT_FILENO);
  ::close(out);
  EXPECT_EQ(::write(STDOUT_FILENO, "before\n", 7), 7);
  write_file("/dev/stdout", "between\n");
  write_file(path, "by name\n");
  EXPECT_EQ(::write(STDOUT_FILENO, "after\n", 6), 6);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  EXPECT_EQ(text_of(path), "before\nbetween\nby name\nafter\n");
}

TEST_F(AtomicFileTest, RefusesWrongPathsAtOnce) {
  const auto refused = [](const fs::path& path) {
    return error_of([&] { AtomicFile(path, "log 'x'"); });
  };
  EXPECT_EQ(refused(folder / "missing" / "f"),
            "log 'x': cannot create it: No such file or directory; expected a path in a folder "
            "that exists and may be written");
  EXPECT_EQ(refused(folder),
            "log 'x': cannot create it: Is a directory; expected a path of a file");
  std::ofstream(folder / "f") << "older";
  EXPECT_EQ(refused(folder / "f" / "below"),
            "log 'x': cannot create it: Not a directory; expected a path in a folder that exists "
            "and may be written");
  if (::geteuid() != 0) {  // root may write everything
    ::chmod((folder / "f").c_str(), 0400);
    EXPECT_EQ(refused(folder / "f"),
              "log 'x': cannot replace it: Permission denied; expected a file that may be written");
  }
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, AFullDiskKeepsWhatWasWhole) {
  EXPECT_EQ(error_of([] { write_file("/dev/full", "12345"); }),
            "/dev/full: cannot write it: No space left on device; expected room for 5 more bytes");
  rlimit saved{};
  ::getrlimit(RLIMIT_FSIZE, &saved);
  rlimit small = saved;
  small.rlim_cur = 10;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const fs::path path = folder / "f";
  std::string before, after;
  {
    AtomicFile file(path);
    before = error_of([&] { file.write("more than ten bytes"); });
    file.write("eight b\n");
    file.commit();
    after = error_of([&] { file.write("four more\n"); });
  }
  ::setrlimit(RLIMIT_FSIZE, &saved);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(before,
            path.string() + ": cannot write it: File too large; expected room for 19 more bytes");
  EXPECT_EQ(after,
            path.string() + ": cannot write it: File too large; expected room for 10 more bytes");
  EXPECT_EQ(text_of(path), "eight b\n");
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, RemovesWhatKilledWritersHaveLeft) {
  const fs::path path = folder / "f", other = folder / "f2.tmp-1-0", own = folder / "f.tmp-backup";
  std::ofstream(other) << "of another path";
  std::ofstream(own) << "somebody's own";
  AtomicFile living(path);
  living.write("living");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile killed(path);
    killed.write("half");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(entries(), 4);  // two others', the living one's, the dead one's
  write_file(path, "next");
  EXPECT_EQ(entries(), 4);  // and the file itself in place of the dead one's
  EXPECT_EQ(text_of(path), "next");
  living.commit();
  EXPECT_EQ(text_of(path), "living");
  EXPECT_TRUE(fs::exists(other) && fs::exists(own));
}

}  // namespace
}  // namespace arenite
