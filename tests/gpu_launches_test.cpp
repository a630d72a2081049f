// How many kernels a training step launches on a GPU, and how many of them one behind the other,
// without one and without running any.
#include <arenite/graph/spaces.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>

#include <gtest/gtest.h>

#include "codelets/cuda/grid.hpp"
#include "src/runtime/branches.hpp"
#include "src/runtime/device.hpp"
#include "src/train/step_on_gpu.hpp"
#include "tests/grids_as_loops.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace arenite {
namespace {

int launches_of(const graph::Graph& graph, const graph::Op& op) {
  // Nobody looks at what lies there.
  std::byte nothing;
  const std::vector<void*> operands(op.operands.size()), results(op.results.size());
  const auto prepared = kernels().at(op, op.kernel, DeviceKind::cuda).prepare({graph, op});
  runtime::KernelCall call;
  call.operands = operands.data();
  call.results = results.data();
  call.workspace = &nothing;
  call.state = prepared.state.get();
  codelets::cuda::grid_count() = {.instead = true, .count = 0};
  prepared.run(call);
  codelets::cuda::grid_count().instead = false;
  return codelets::cuda::grid_count().count;
}

struct Launches {
  int all = 0;
  int in_a_row = 0;  ///< on the longest way through the branches of a recording
  std::string list;  ///< by operator and kernel
};

/// A step on one GPU that has the images to train on.
Launches launches(const std::string& network, std::int64_t batch) {
  compile::Compiled step = train::step_on_gpu(network, batch);
  runtime::ProgramSpec& spec = step.spec;
  plan::StateLayout state;
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state);
  Launches found;
  for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
    const graph::Task& task = spec.schedule.tasks[t];
    if (task.staging) continue;
    EXPECT_EQ(task.space.device, DeviceKind::cuda);
    const auto placed =
        runtime::branch(runtime::footprints(spec, t, kernels()), runtime::Device::most_branches);
    std::vector<int> ends(placed.size()), branch_ends(runtime::Device::most_branches);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const graph::Op& op = spec.graph[task.ops[i]];
      const int count = launches_of(spec.graph, op);
      found.all += count;
      found.list += std::string(op.name()) + "/" + op.kernel + " " + std::to_string(count) + "\n";
      int begin = branch_ends[placed[i].branch];
      for (const std::size_t first : placed[i].follows) begin = std::max(begin, ends[first]);
      branch_ends[placed[i].branch] = ends[i] = begin + count;
      found.in_a_row = std::max(found.in_a_row, ends[i]);
    }
  }
  return found;
}

struct GpuLaunches : ::testing::Test {
  static void SetUpTestSuite() { arenite::testing::add_grids_as_loops(kernels()); }
};

// A step of a small network takes little longer than its launches do.
TEST_F(GpuLaunches, AreFew) {
  struct Expected {
    const char* network;
    int all, in_a_row;
  };
  for (const auto& [network, all, in_a_row] :
       {Expected{"cnn1", 13, 11}, Expected{"cnn2", 20, 15}, Expected{"lenet5", 23, 16},
        Expected{"vgg-small", 48, 36}}) {
    const Launches found = launches(network, 64);
    EXPECT_EQ(found.all, all) << network << ":\n" << found.list;
    EXPECT_EQ(found.in_a_row, in_a_row) << network << ":\n" << found.list;
  }
}

// Where lanes run is decided by estimates: a GPU's kernel may have the name of one of the CPU's.
TEST_F(GpuLaunches, TakeAsLongAsOnAGpu) {
  graph::TargetProfile target = graph::default_target();
  const auto estimate = [&] {
    const runtime::ProgramSpec spec = train::step_on_gpu("vgg-small", 64).spec;
    double microseconds = 0;
    for (graph::OpId id : spec.graph[graph::Graph::body].ops) {
      if (graph::space_of(spec.graph, spec.graph[id]).device == DeviceKind::cuda)
        microseconds += target.microseconds({spec.graph, spec.graph[id]});
    }
    return microseconds;
  };
  const double unlisted = estimate();
  EXPECT_LT(unlisted, 10'000);  // on a core of a CPU it is 200 ms
  target.gpu_kernels["conv2d_relu/winograd"] = {.gflops = 1};
  EXPECT_GT(estimate(), 100 * unlisted);
}

}  // namespace
}  // namespace arenite
