// What must hold for all built-in operators together.
#include <arenite/graph/builder.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "codelets/words.hpp"

namespace arenite::codelets::testing {
namespace {

/// Without a rate of its own a kernel's tasks are sized by a guess.
TEST(Operators, KernelsOfOperatorsWithACostHaveARate) {
  const auto& rates = graph::default_target().kernels;
  std::size_t seen = 0;
  for (const std::string& op : operators().names()) {
    if (!operators().at(op)->cost) continue;
    for (const Kernel& kernel : kernels().find(op)) {
      if (kernel.device != DeviceKind::cpu || kernel.compute != runtime::Compute::float32) continue;
      ++seen;
      EXPECT_TRUE(rates.contains(op + "/" + kernel.name) || rates.contains("*/" + kernel.name))
          << op << "/" << kernel.name;
    }
  }
  EXPECT_GT(seen, 30u);
}

/// A JIT would take seconds over such sizes, and get them wrong.
TEST(Operators, HugeSizesAreLeftToPlainLoops) {
  constexpr std::int64_t huge = (std::int64_t{1} << 31) - 1;
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  const auto declare = [&](const char* name, Shape shape) {
    return builder.declare(name, DType::float32, shape, graph::StorageClass::parameter);
  };
  const ValueId x = declare("x", {huge, 16}), w = declare("w", {16, 1});
  builder.add("dense", {x, w});
  builder.add("dense_grad_input", {declare("g", {huge, 1}), w});
  builder.add("conv2d", {declare("image", {1, 1, huge, 16}), declare("taps", {1, 1, 16, 16})});
  for (graph::OpId id : graph[graph::Graph::body].ops) {
    const OpView op(graph, graph[id]);
    EXPECT_EQ(runtime::kernel_selector(kernels())->choose(op), "plain") << op.op().name();
  }
}

/// And no rate is of a kernel that is gone.
TEST(Operators, RatesAreOfKernels) {
  for (const auto& [name, rate] : graph::default_target().kernels) {
    const std::size_t slash = name.find('/');
    EXPECT_NO_THROW(kernels().at(name.starts_with("*") ? "map" : name.substr(0, slash),
                                 name.substr(slash + 1), DeviceKind::cpu));
  }
}

}  // namespace
}  // namespace arenite::codelets::testing
