#include "src/base/cgroup.hpp"

#include "src/base/atomic_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace arenite {
namespace {

namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  Cgroup() : root_(fs::temp_directory_path() / ("arenite-cgroup-" + std::to_string(::getpid()))) {}
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    write_file(root_ / path, text);
  }
  CgroupLimits limits() const { return cgroup_limits(root_); }

 private:
  fs::path root_;
};

TEST_F(Cgroup, NothingIsKnownWithoutProc) {
  EXPECT_FALSE(limits().processors);
  EXPECT_FALSE(limits().memory);
}

TEST_F(Cgroup, TheTightestGroupCounts) {
  write("proc/self/cgroup", "0::/user.slice/run.scope\n");
  write("sys/fs/cgroup/user.slice/run.scope/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/user.slice/run.scope/memory.max", "2147483648\n");
  write("sys/fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_EQ(limits().processors, 1.5);
  EXPECT_EQ(limits().memory, 2147483648);
}

TEST_F(Cgroup, AContainerSeesItsOwnGroupAsTheRoot) {
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(limits().processors, 0.5);
}

TEST_F(Cgroup, VersionOne) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job/inner\n2:cpuset:/\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/job/inner/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(limits().processors, 2);
  EXPECT_EQ(limits().memory, 1048576);
}

TEST_F(Cgroup, WhatCannotBeReadLimitsNothing) {
  write("proc/self/cgroup", "\n:\n0:\n0::/group\n7:cpu\n");
  write("sys/fs/cgroup/group/cpu.max", "abc\n");
  write("sys/fs/cgroup/group/memory.max", "");
  write("sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_FALSE(limits().processors);
  EXPECT_FALSE(limits().memory);
}

}  // namespace
}  // namespace arenite
