#include "src/train/compiled_step.hpp"

#include <arenite/graph/sweep.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <utility>

#include "src/train/objective.hpp"

namespace arenite::train {
namespace {

/// Whether GPUs draw, from data in their memory.
bool draws_on_gpu(const StepRequest& request) {
  return request.resident && std::ranges::any_of(request.how.spaces, [](const Space& space) {
           return space.device != DeviceKind::cpu;
         });
}

graph::Sweep sweep_of(const StepRequest& request) {
  return {
      .inputs = {{"images", "images", DType::uint8, 1.0 / 255}, {"labels", "labels", DType::uint8}},
      .samples = request.dataset,
      .first = draws_on_gpu(request) ? "first" : ""};
}

}  // namespace

compile::Compiled compile_step(const nn::Layer& model, const nn::Loss& loss,
                               const optim::Optimizer& optimizer, const StepRequest& request,
                               plan::StateLayout* state) {
  const Network network = network_of(classify(model, request.image, loss), optimizer,
                                     {.batch = request.batch, .training = request.training});
  const graph::Graph graph = graph::swept(network.graph, operators(), sweep_of(request));
  const compile::Entry entry{.name = request.name,
                             .train = request.training,
                             .averaged = !request.training && optimizer.averaging.has_value(),
                             .part = request.part};
  return state ? compile::compile(graph, entry, request.how, *state)
               : compile::lower(graph, entry, request.how);
}

}  // namespace arenite::train
