// Any bytes as a plan's JSON, and as a step plan's: an Error, or a plan that prints and reads back
// to an equal one, and that verifiers and pictures take or refuse.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/step_json.hpp>
#include <arenite/plan/verify.hpp>

#include "tests/fuzz/fuzzing.hpp"

#include <string_view>

namespace {

using namespace arenite;
using fuzzing::accepted;
using fuzzing::require;

/// What the step plans in the corpus are plans of: every storage class, reuse, and an output.
struct Step {
  graph::Graph graph = graph::parse(R"(
    $1 = ConstantTensor(c, float32, [64, 64]);
    $2 = InputTensor(x, float32, [8, 64]);
    $3 = ParameterTensor(w, float32, [64, 64]);
    $4 = relu($2);
    $5 = dense($4, $1);
    $6 = relu($5);
    $7 = dense($6, $3);
    $8 = relu($7);
    $9 = dense_grad_input($8, $3) @backward;
    $10 = dense_grad_weight($6, $8) @backward;
    $11 = relu($9) @backward;
    accumulate($3, $10) @update;
    result = $11;)",
                                    operators());
  graph::Schedule schedule;

  Step() {
    graph::TargetProfile one_op_a_task;
    one_op_a_task.task_microseconds = one_op_a_task.phase_microseconds = 0;
    schedule = graph::coarsen(graph, one_op_a_task);
  }
};

void check(const plan::Plan& plan) {
  const std::string once = plan::to_json(plan);
  require(plan::from_json(once) == plan, "a plan that does not read back: " + once);
  plan::Problem problem;
  if (accepted([&] {
        for (const plan::Buffer& buffer : plan.buffers) problem.add(buffer);
      }))
    accepted([&] { plan::verify(problem, plan); });
  accepted([&] { plan::to_svg(plan); });
  accepted([&] { plan::draw_text(plan); });
}

void check(const plan::StepPlan& plan) {
  const std::string once = plan::to_json(plan);
  require(plan::step_plan_from_json(once) == plan, "a step plan that does not read back: " + once);
  require(plan::fingerprint(plan).size() == 16, "a fingerprint of another size");
  static const Step step;
  if (accepted([&] { plan::verify_step(step.graph, step.schedule, plan); })) {
    const plan::StepPlan* twice[] = {&plan, &plan};
    accepted([&] { plan::verify_together(twice); });
  }
  for (const plan::Plan& packing : plan.packings) check(packing);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  plan::Plan plan;
  if (accepted([&] { plan = plan::from_json(text); })) check(plan);
  plan::StepPlan step;
  if (accepted([&] { step = plan::step_plan_from_json(text); })) check(step);
  return 0;
}
