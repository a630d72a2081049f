// A batch known only at run time: what is planned at its upper bound holds for every smaller one.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/networks.hpp"

namespace arenite {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

/// A network and its loss; the divisor is the same for every batch.
Graph forward(const std::string& name, std::int64_t batch) {
  const nn::NamedModel& model = nn::model(name);
  Graph made;
  graph::Builder builder(made, operators());
  std::vector<std::int64_t> dims{batch};
  dims.insert(dims.end(), model.image.begin(), model.image.end());
  const ValueId image = builder.declare("image", DType::float32, Shape(dims), StorageClass::input);
  const ValueId labels = builder.declare("labels", DType::int32, {batch}, StorageClass::input);
  nn::ModelBuilder layers(builder);
  made.outputs = {nn::cross_entropy()(layers, model.layers(layers, image), labels, 64).value};
  return made;
}

Graph with_open_batch(const std::string& name) {
  Graph made = forward(name, 64);
  graph::name_size(made, made.find("image"), 0, "batch");
  graph::name_size(made, made.find("labels"), 0, "batch");
  return made;
}

/// Bytes that forward and backward need together.
std::int64_t step_bytes(Graph step, plan::InFlight in_flight) {
  graph::apply_mode(step, operators(), graph::Mode::train);
  graph::Builder builder(step, operators());
  builder.context.phase = Phase::backward;
  graph::add_gradients(builder, step.outputs, step.declared(StorageClass::parameter));
  graph::in_place(step);
  const graph::Schedule schedule = graph::coarsen(step);
  plan::StateLayout state;
  const plan::StepPlan plan = plan::plan_step(
      step, schedule, state, {.in_flight = in_flight, .solve = {.effort = plan::Effort::fast}});
  plan::verify_step(step, schedule, plan);
  return plan.transient_bytes();
}

class RunTimeSizes : public ::testing::TestWithParam<std::string> {};

TEST_P(RunTimeSizes, GiveTheNetworkOfThatBatch) {
  const Graph open = with_open_batch(GetParam());
  for (const std::int64_t batch : {1, 40, 64}) {
    std::string why;
    EXPECT_TRUE(
        graph::equal(graph::at_sizes(open, {{"batch", batch}}), forward(GetParam(), batch), &why))
        << "batch " << batch << ": " << why;
  }
}

TEST_P(RunTimeSizes, NeedNoMoreBytesThanAtTheirBounds) {
  const Graph open = with_open_batch(GetParam());
  for (const plan::InFlight in_flight : {plan::InFlight::lanes(), plan::InFlight::unlimited()}) {
    const std::int64_t bound = step_bytes(open, in_flight);
    for (const std::int64_t batch : {1, 40, 63, 64}) {
      const std::int64_t bytes = step_bytes(graph::at_sizes(open, {{"batch", batch}}), in_flight);
      EXPECT_LE(bytes, bound) << "batch " << batch;
      EXPECT_EQ(bytes == bound, batch == 64) << "batch " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, RunTimeSizes, ::testing::ValuesIn(testing::networks()),
                         [](const auto& test) { return testing::case_name(test.param); });

}  // namespace
}  // namespace arenite
