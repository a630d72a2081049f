// Machines that hwloc makes up, of which StarPU hears the same.
#include <arenite/runtime/session.hpp>

#include "src/runtime/environment.hpp"
#include "src/runtime/simulated_device.hpp"
#include "src/runtime/starpu.hpp"
#include "src/runtime/worker_processors.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <string>
#include <vector>

namespace arenite::runtime {
namespace {

struct WorkerProcessors : ::testing::Test {
  WorkerProcessors() {
    for (const char* name : {"STARPU_WORKERS_CPUID", "STARPU_WORKERS_COREID", "STARPU_NCPU",
                             "STARPU_NTHREADS_PER_CORE", "STARPU_WORKERS_GETBIND"})
      lent.hide(name);
  }
  /// Processors of the system's first numbers, which this process has to be allowed.
  void make_up(const std::string& machine, bool bind = true) {
    lent.set("HWLOC_COMPONENTS", "synthetic,stop");
    lent.set("HWLOC_SYNTHETIC", machine);
    lent.set("HWLOC_THISSYSTEM", bind ? "1" : "0");
  }
  static bool may_use_first(int count) {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return false;
    for (int i = 0; i < count; ++i) {
      if (!CPU_ISSET(i, &set)) return false;
    }
    return true;
  }
  static std::multiset<int> bound() {
    std::multiset<int> all;
    for (unsigned i = 0; i < starpu_worker_get_count(); ++i)
      all.insert(starpu_worker_get_bindid(static_cast<int>(i)));
    return all;
  }

  LentVariables lent;
};

TEST_F(WorkerProcessors, AreOneOfEachCoreBeforeTheirHyperthreads) {
  make_up("numa:2 core:2 pu:2", false);
  lent.set("STARPU_WORKERS_GETBIND", "0");
  EXPECT_EQ(worker_processors(), (std::vector<unsigned>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST_F(WorkerProcessors, AreThoseThatTheThreadMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (!may_use_first(2)) GTEST_SKIP() << "it has to be allowed two processors";
  cpu_set_t second;
  CPU_ZERO(&second);
  CPU_SET(1, &second);
  make_up("numa:1 core:2 pu:2");
  ASSERT_EQ(::sched_setaffinity(0, sizeof second, &second), 0);
  const std::vector<unsigned> found = worker_processors();
  {
    const Session session({.workers = 1});
    EXPECT_EQ(bound(), std::multiset<int>{1});
  }
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(found, std::vector<unsigned>{1});
}

// StarPU 1.4 would put both on the core's first hyperthread.
TEST_F(WorkerProcessors, AreNotSharedOnOneCore) {
  if (!may_use_first(2)) GTEST_SKIP() << "it has to be allowed two processors";
  make_up("numa:1 core:1 pu:2");
  ::testing::internal::CaptureStderr();
  const Session session({.workers = 2});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(bound(), (std::multiset<int>{0, 1}));
  EXPECT_EQ(shared_processors(2), "");
}

TEST_F(WorkerProcessors, MayBeFewerThanWorkers) {
  if (!may_use_first(1)) GTEST_SKIP() << "it has to be allowed the first processor";
  make_up("numa:1 core:1 pu:1");
  EXPECT_EQ(worker_processors(), std::vector<unsigned>{0});
  const Session session({.workers = 2});
  EXPECT_EQ(bound(), (std::multiset<int>{0, 0}));
  EXPECT_EQ(shared_processors(1), "");
}

TEST_F(WorkerProcessors, AreTheOnesThatWereChosen) {
  if (!may_use_first(2)) GTEST_SKIP() << "it has to be allowed two processors";
  make_up("numa:1 core:1 pu:2");
  lent.set("STARPU_WORKERS_CPUID", "1");
  const Session session({.workers = 2});
  EXPECT_EQ(bound(), (std::multiset<int>{1, 1}));
  const std::string told = shared_processors(2);
  EXPECT_NE(told.find("workers 0 and 1 share processor 1"), std::string::npos) << told;
}

TEST_F(WorkerProcessors, OfGpusAloneAreFew) {
  const testing::SimulatedGpus gpus(1);
  {
    const Session session({.device = "cuda"});
    EXPECT_LE(session.workers(), 2);
  }
  const Session more({.workers = 3, .device = "cuda"});
  EXPECT_EQ(more.workers(), 3);
}

}  // namespace
}  // namespace arenite::runtime
