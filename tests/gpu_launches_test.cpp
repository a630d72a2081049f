// How many kernels a training step launches on a GPU, without one and without running any.
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "codelets/cuda/grid.hpp"
#include "src/train/step_on_gpu.hpp"
#include "tests/grids_as_loops.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace arenite {
namespace {

/// A step on one GPU that has the images to train on, by operator and kernel.
std::map<std::string, int> launches(const std::string& network, std::int64_t batch) {
  const train::StepProgram step = train::step_on_gpu(network, batch);
  const graph::Graph& graph = step.spec.graph;
  std::map<std::string, int> counted;
  codelets::cuda::grid_count().instead = true;
  for (const auto& task : step.spec.schedule.tasks) {
    if (task.staging) continue;
    EXPECT_EQ(task.space.device, DeviceKind::cuda);
    for (graph::OpId id : task.ops) {
      const graph::Op& op = graph[id];
      if (op.kernel.empty()) continue;  // a view
      // Nobody looks at what lies there.
      std::byte nothing;
      const std::vector<void*> operands(op.operands.size()), results(op.results.size());
      const auto prepared =
          kernels().at(op.name(), op.kernel, DeviceKind::cuda).prepare({graph, op});
      runtime::KernelCall call;
      call.operands = operands.data();
      call.results = results.data();
      call.workspace = &nothing;
      call.state = prepared.state.get();
      codelets::cuda::grid_count().count = 0;
      prepared.run(call);
      counted[std::string(op.name()) + "/" + op.kernel] += codelets::cuda::grid_count().count;
    }
  }
  codelets::cuda::grid_count().instead = false;
  return counted;
}

// A step of a small network takes little longer than its launches do.
TEST(GpuLaunches, AreFew) {
  arenite::testing::add_grids_as_loops(kernels());
  const std::map<std::string, int> most{{"cnn1", 11}, {"cnn2", 18}, {"lenet5", 21}};
  for (const auto& [network, expected] : most) {
    int all = 0;
    std::string list;
    for (const auto& [kernel, count] : launches(network, 64)) {
      all += count;
      list += kernel + " " + std::to_string(count) + "\n";
    }
    EXPECT_EQ(all, expected) << network << ":\n" << list;
  }
}

}  // namespace
}  // namespace arenite
