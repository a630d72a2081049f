// What the runtime is built on, asked of StarPU itself: tasks that are built once and resubmitted
// in a ring of sets, waited for by their own program, without a heap call a step.
#include <gtest/gtest.h>
#include <arenite/runtime/heap_calls.hpp>

#include "src/runtime/measurements.hpp"
#include "src/runtime/starpu.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace arenite::runtime {
namespace {

/// Two sets of a diamond (0 → 1, 2 → 3), joined in a ring: each set's first task follows the other
/// set's last.
class Ring {
 public:
  struct Node {
    Ring* ring = nullptr;
    int set = 0, place = 0;
  };

  explicit Ring(bool conflicting) {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      starpu_variable_data_register(&handles_[i], STARPU_MAIN_RAM,
                                    reinterpret_cast<std::uintptr_t>(&bytes_[i]), sizeof bytes_[i]);
      starpu_data_set_sequential_consistency_flag(handles_[i], 0);
    }
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = run;
    codelet_.nbuffers = STARPU_VARIABLE_NBUFFERS;
    for (int set = 0; set < 2; ++set) {
      for (int place = 0; place < 4; ++place) make_task(set, place, conflicting);
      starpu_task** t = tasks_[static_cast<std::size_t>(set)].data();
      starpu_task_declare_deps_array(t[1], 1, &t[0]);
      starpu_task_declare_deps_array(t[2], 1, &t[0]);
      starpu_task* both[] = {t[1], t[2]};
      starpu_task_declare_deps_array(t[3], 2, both);
    }
    starpu_task_declare_deps_array(tasks_[1][0], 1, &tasks_[0][3]);
    submit(0);
    submit(1);
    wait(0);
    wait(1);
    // Closed only now: an edge from a task that has run counts as met.
    starpu_task_declare_deps_array(tasks_[0][0], 1, &tasks_[1][3]);
    dry_ = false;
  }

  ~Ring() {
    for (auto& set : tasks_) {
      for (starpu_task* task : set) starpu_task_destroy(task);
    }
    for (starpu_data_handle_t handle : handles_) starpu_data_unregister_no_coherency(handle);
  }

  void make_room(int steps) { log_.reserve(log_.size() + 2 * static_cast<std::size_t>(steps)); }

  /// Runs steps ahead: at most two are under way.
  void run_steps(int steps) {
    for (int i = 0; i < steps; ++i) {
      wait(i % 2);
      submit(i % 2);
    }
    wait(0);
    wait(1);
  }

  /// Sets of the first and last task of each step, in the order they ran.
  const std::vector<int>& log() const { return log_; }

 private:
  static void run(void**, void* argument) {
    const Node& node = *static_cast<Node*>(argument);
    if (node.ring->dry_) return;
    // Only the ends of the diamonds write: they are ordered by the ring's edges.
    if (node.place == 0 || node.place == 3) node.ring->log_.push_back(node.set * 10 + node.place);
  }

  void make_task(int set, int place, bool conflicting) {
    const auto s = static_cast<std::size_t>(set), p = static_cast<std::size_t>(place);
    nodes_[s][p] = {this, set, place};
    starpu_task* task = starpu_task_create();
    task->cl = &codelet_;
    task->cl_arg = &nodes_[s][p];
    task->cl_arg_size = sizeof(Node);
    task->cl_arg_free = 0;
    task->destroy = 0;
    task->detach = 0;
    task->sequential_consistency = 0;
    task->nbuffers = 1;
    // Conflicting: tasks 1 and 2, which no edge orders, both write handle 1.
    task->handles[0] = handles_[conflicting && place == 2 ? 1 : p];
    task->modes[0] = STARPU_RW;
    tasks_[s][p] = task;
  }

  void submit(int set) {
    for (starpu_task* task : tasks_[static_cast<std::size_t>(set)])
      ASSERT_EQ(starpu_task_submit(task), 0);
  }
  void wait(int set) {
    auto& tasks = tasks_[static_cast<std::size_t>(set)];
    ASSERT_EQ(starpu_task_wait_array(tasks.data(), static_cast<unsigned>(tasks.size())), 0);
  }

  std::array<double, 4> bytes_{};
  std::array<starpu_data_handle_t, 4> handles_{};
  starpu_codelet codelet_{};
  std::array<std::array<Node, 4>, 2> nodes_{};
  std::array<std::array<starpu_task*, 4>, 2> tasks_{};
  std::vector<int> log_;
  bool dry_ = true;
};

class StarpuProbe : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("STARPU_SILENT", "1", 0);
    starpu_conf conf = starpu::configuration(GetParam(), {});
    conf.sched_policy_name = "lws";
    const MeasurementsLock lock(measurements_folder());
    ASSERT_EQ(starpu_init(&conf), 0);
  }
  void TearDown() override { starpu_shutdown(); }
};

TEST_P(StarpuProbe, ARingOfTwoTaskSetsRunsInOrder) {
  constexpr int steps = 2000;
  Ring ring(false);
  ring.run_steps(steps);
  ASSERT_EQ(ring.log().size(), 2u * steps);
  for (int i = 0; i < steps; ++i) {
    ASSERT_EQ(ring.log()[2 * static_cast<std::size_t>(i)], i % 2 * 10) << "step " << i;
    ASSERT_EQ(ring.log()[2 * static_cast<std::size_t>(i) + 1], i % 2 * 10 + 3) << "step " << i;
  }
}

/// Of 1000 steps, after as many for warming up. The log's room is made before.
long heap_calls_of(Ring& ring) {
  constexpr int steps = 1000;
  ring.make_room(2 * steps);
  ring.run_steps(steps);
  const long before = *heap_calls();
  ring.run_steps(steps);
  return *heap_calls() - before;
}

TEST_P(StarpuProbe, AResubmittedStepMakesNoHeapCall) {
  if (!heap_calls()) GTEST_SKIP() << "the heap counter is not preloaded (run through ctest)";
  Ring ring(false);
  EXPECT_EQ(heap_calls_of(ring), 0);
}

TEST_P(StarpuProbe, WritersOfOneHandleWithoutAnEdgeCostHeapCalls) {
  if (!heap_calls()) GTEST_SKIP() << "the heap counter is not preloaded (run through ctest)";
  // StarPU queues the second writer in a request that it allocates: why every two accesses of a
  // handle must be ordered by edges, and a handle class holds only what is.
  Ring ring(true);
  EXPECT_GT(heap_calls_of(ring), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, StarpuProbe, ::testing::Values(1, 2));

}  // namespace
}  // namespace arenite::runtime
