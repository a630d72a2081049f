// Any bytes as a script: an Error, or a graph that prints and reads back to an equal one, and that
// the passes behind the parser take or refuse.
// Input: one byte that chooses the operators ('0': small stand-ins, '1': all built-in ones), then
// the script.
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>

#include "src/compile/compile.hpp"
#include "src/graph/test_operators.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <vector>

namespace {

using namespace arenite;
using fuzzing::accepted;
using fuzzing::require;
using graph::Graph;

void prints_and_reads_back(const Graph& read, const graph::OperatorTable& table) {
  const std::string once = graph::print(read);
  const Graph again = graph::parse(once, table);
  std::string why;
  require(graph::equal(read, again, &why) && graph::print(again) == once,
          "no fixed point: " + why + "\n" + once);
  require(graph::dependencies(read).ops.size() == read[Graph::body].ops.size(), "ops lost");
}

/// The smallest run of a script that leaves sizes open.
void give_sizes(const Graph& read, const graph::OperatorTable& table) {
  graph::SizeValues sizes;
  for (const graph::RunTimeSize& size : graph::run_time_sizes(read)) sizes.emplace(size.name, 1);
  if (sizes.empty()) return;
  Graph run;
  if (accepted([&] { run = graph::at_sizes(read, sizes); })) prints_and_reads_back(run, table);
}

/// What kernels say of an op whose shapes nobody chose with care; those that need a JIT too, which
/// `select` leaves out here.
void ask_kernels(const Graph& read) {
  for (std::size_t i = 0; i < read.op_count(); ++i) {
    const graph::OpView op(read, read[graph::OpId(i)]);
    require(graph::default_target().microseconds(op) >= 0, "a cost below 0");
    for (const runtime::Kernel& kernel : kernels().find(op.op())) {
      if (kernel.supports && !kernel.supports(op)) continue;
      if (kernel.workspace) require(kernel.workspace(op) >= 0, "a workspace below 0");
      for (std::size_t k = 0; kernel.wanted_halo && k < op.operand_count(); ++k) {
        if (op.has_operand(k)) require(kernel.wanted_halo(op, k) >= -1, "a halo below -1");
      }
    }
  }
}

/// By which lanes keep parts of any weight.
graph::TargetProfile dear_handovers() {
  graph::TargetProfile target = graph::default_target();
  target.handover_gigabytes = 1e-6;
  return target;
}

/// Lanes that one sample's work is enough for, so that every pass has something to do.
graph::TargetProfile ready_for_lanes() {
  graph::TargetProfile target = dear_handovers();
  target.two_lanes_microseconds = 0;
  return target;
}

/// All the way to a plan; a script may name kernels and workspaces itself.
void compile_step(const Graph& read) {
  const compile::Compiled made =
      compile::lower(read, {.name = "step", .train = read.training.has_value()},
                     {.target = ready_for_lanes(), .remarks = true});
  const Graph& step = made.spec.graph;
  for (const auto& [op, reason] : graph::inserted_copies(step)) require(!reason.empty(), "no why");
  prints_and_reads_back(step, operators());
  plan::StateLayout state;
  plan::StepPlan plan;
  if (accepted([&] { plan = plan::plan_step(step, made.spec.schedule, state, {}); }))
    plan::verify_step(step, made.spec.schedule, plan);
}

/// The same with the gradients of all its scalars, as if it were to be trained.
void differentiate(Graph read) {
  std::vector<graph::ValueId> losses;
  for (graph::ValueId output : read.outputs) {
    if (read[output].shape.elements() == 1) losses.push_back(output);
  }
  graph::Builder builder(read, operators());
  builder.context.phase = Phase::backward;
  graph::add_gradients(builder, losses, read.declared(graph::StorageClass::parameter));
  compile_step(read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool built_in = data[0] % 2 == 1;
  const graph::OperatorTable& table = built_in ? operators() : graph::testing::table();
  const std::string_view script(reinterpret_cast<const char*>(data) + 1, size - 1);
  Graph read;
  if (!accepted([&] { read = graph::parse(script, table); })) return 0;
  prints_and_reads_back(read, table);
  give_sizes(read, table);
  if (!built_in) return 0;
  ask_kernels(read);
  accepted([&] { differentiate(read); });
  accepted([&] { compile_step(read); });
  return 0;
}
