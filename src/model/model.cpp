#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/base/element.hpp"
#include "src/base/refuse.hpp"
#include "src/model/model_impl.hpp"
#include "src/model/ports.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace arenite {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

std::vector<Space> spaces_of(const runtime::Session& session, const std::string& device) {
  if (device.empty()) return session.spaces();
  if (device == "cpu") return {Space{}};
  std::string known = "cpu";
  for (const Space& space : session.spaces()) {
    if (space.device == DeviceKind::cpu) continue;
    const std::string name = "cuda:" + std::to_string(space.index);
    if (device == name || device == "cuda") return {space};
    known += ", " + name;
  }
  refuse("device '" + device + "'", "one of the session's: " + known, {},
         "start the session on it");
}

/// There is one of each for all programs.
void refuse_open_constants(const Graph& graph) {
  for (const ValueId id : graph.declared(StorageClass::constant)) {
    const auto& names = graph[id].size_names;
    const auto open = std::ranges::find_if(names, [](const auto& name) { return !name.empty(); });
    if (open == names.end()) continue;
    refuse("constant '" + graph[id].name + "' of the size '" + *open + "', which only a run knows",
           "a constant of known sizes", {},
           "the model's options give it, as " + *open + "=" +
               std::to_string(graph[id].shape[static_cast<int>(open - names.begin())]));
  }
}

}  // namespace

compile::Options options_of(const runtime::Session& session, const ModelOptions& options) {
  return {.spaces = spaces_of(session, options.device),
          .shards = options.shards,
          .lanes = options.lanes,
          .at_once = options.shards_at_once,
          .workers = session.workers(),
          .fuse = options.fuse,
          .kernels = {.compute = options.compute,
                      .without = options.cudnn ? "" : "cudnn",
                      .choices = options.kernels},
          .target = options.target,
          .plan = {.layout = options.layout, .solve = {}}};
}

Model::Impl::Turn::Turn(Impl& impl, bool may_be_closed) : impl_(impl) {
  if (impl.busy.test_and_set()) {
    refuse("a model that another thread uses", "one thread at a time", {},
           "give each thread a model of its own, or take turns");
  }
  if (impl.set != nullptr || may_be_closed) return;
  impl.busy.clear();
  refuse("a model that was closed", "one that is open");
}

Model::Model(runtime::Session& session, Graph graph, std::span<const NamedBytes> constants,
             const ModelOptions& options) {
  if (options.sizes_kept < 1)
    refuse(std::to_string(options.sizes_kept) + " sizes to keep programs of", "at least 1");
  if (!options.sizes.empty()) graph = graph::at_sizes(graph, options.sizes);
  refuse_open_constants(graph);
  std::vector<Port> ports = ports_of(graph, StorageClass::constant);
  const std::size_t needed = ports.size();
  const std::vector<Kept> kept = kept_of(graph, ports);
  for (const Kept& one : kept) ports.push_back(one.port);
  std::vector<const NamedBytes*> given;
  match(ports, constants, "constant", needed, given);
  impl_ = std::make_unique<Impl>(
      ModelPlans(std::move(graph), options.name, options_of(session, options)), options);
  Impl& impl = *impl_;
  for (std::size_t i = 0; i < needed; ++i) {
    const auto* first = static_cast<const std::byte*>(given[i]->data);
    impl.constants[ports[i].name].assign(first, first + ports[i].bytes());
  }
  impl.build();
  for (std::size_t i = needed; i < ports.size(); ++i) {
    if (given[i] == nullptr || ports[i].bytes() == 0) continue;
    const Kept& one = kept[i - needed];
    std::memcpy(impl.state(one.port.cls, one.own).data(), given[i]->data,
                static_cast<std::size_t>(ports[i].bytes()));
  }
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::vector<Port>& Model::inputs() const noexcept {
  return impl_->largest().runs[impl_->way("evaluate")].inputs;
}
const std::vector<Port>& Model::outputs() const noexcept {
  return impl_->largest().runs[impl_->way("evaluate")].outputs;
}

const std::vector<StatePort>& Model::states() const noexcept { return impl_->states; }
bool Model::is_trainable() const noexcept { return impl_->plans.graph().training.has_value(); }

void Model::run(std::string_view entry, std::span<const NamedBytes> inputs,
                std::span<void* const> outputs, const graph::SizeValues& sizes) {
  const Impl::Turn turn(*impl_);
  if (impl_->plans.is_averaged(entry) && impl_->trains()) impl_->begin_averages();
  impl_->run(entry, inputs, outputs, sizes);
}

void Model::evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                     const graph::SizeValues& sizes) {
  run("evaluate", inputs, outputs, sizes);
}

void Model::evaluate_averaged(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                              const graph::SizeValues& sizes) {
  run("averaged", inputs, outputs, sizes);
}

void Model::accumulate(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                       const graph::SizeValues& sizes) {
  run("accumulate", inputs, outputs, sizes);
}

void Model::train_step(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                       const graph::SizeValues& sizes) {
  run("train", inputs, outputs, sizes);
}

/// Which are the parameters, before a first step.
void Model::Impl::begin_averages() {
  if (!plans.graph().training->averaging) return;
  std::int64_t steps = 0;
  std::memcpy(&steps, state(StorageClass::optimizer_state, graph::step_name).data(), sizeof steps);
  const Run& training = largest().runs[0];
  if (steps == 0) compile::begin_averages(*set, training.program->spec().graph);
}

void Model::Impl::run(std::string_view name, std::span<const NamedBytes> from,
                      std::span<void* const> places, const graph::SizeValues& sizes) {
  if ((name == "train" || name == "accumulate") && !trains()) refuse_without_training();
  if (name == "averaged" && (!trains() || !plans.graph().training->averaging)) {
    refuse("means of parameters asked for, where training makes none",
           "a train statement that averages");
  }
  const std::size_t chosen = way(name), number = plans.ways()[chosen].entry;
  const bool needs_places = !trains(number) || !places.empty();
  // What is wrong is said before anything is built for it.
  if (const Sized* known = find(sizes);
      known != nullptr && known->runs[chosen].program != nullptr) {
    check(known->runs[chosen].inputs, known->runs[chosen].outputs, from, places, needs_places);
  } else {
    const auto [new_inputs, new_outputs] = ports_at(plans.entries()[number], sizes);
    check(new_inputs, new_outputs, from, places, needs_places);
  }
  Run& how = run_of(at(sizes), chosen);
  const std::vector<Port>&inputs = how.inputs, &outputs = how.outputs;
  runtime::Program& program = *how.program;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    with_element(inputs[i].type, [&](auto element) {
      if (inputs[i].bytes() == 0) return;
      std::memcpy(program.input<decltype(element)>(inputs[i].name), given[i]->data,
                  static_cast<std::size_t>(inputs[i].bytes()));
    });
  }
  std::int64_t* const count = how.position.empty() ? nullptr : &drawn[trains(number) ? 0 : number];
  if (count != nullptr) *program.input<std::int64_t>(how.position) = *count;
  // Which batches wait has to be known for the next one.
  if (needs_places || plans.graph().training->accumulate > 1) {
    program.run({.steps = 1});
  } else {
    program.submit();
  }
  ++how.count;
  ++runs[plans.entries()[number]];
  if (count != nullptr) *count += how.samples;
  if (trains(number)) batches[0] = name == "train" ? 0 : batches[0] + 1;
  std::size_t next = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    auto* place = static_cast<std::byte*>(places[i]);
    for (const std::size_t end = next + how.pieces[i]; next < end; ++next) {
      with_element(outputs[i].type, [&](auto element) {
        const auto values = program.output<decltype(element)>(next);
        if (!values.empty()) std::memcpy(place, values.data(), values.size_bytes());
        place += values.size_bytes();
      });
    }
  }
}

/// Finds in `given` the bytes of each input.
void Model::Impl::check(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
                        std::span<const NamedBytes> from, std::span<void* const> places,
                        bool needs_places) {
  match(inputs, from, "input", inputs.size(), given);
  if (places.size() != outputs.size() && needs_places) {
    refuse(std::to_string(places.size()) + " places for outputs",
           std::to_string(outputs.size()) + ": " + names_of(outputs));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != nullptr || outputs[i].bytes() == 0) continue;
    refuse("null for output '" + outputs[i].name + "'",
           "a place of " + std::to_string(outputs[i].bytes()) + " bytes");
  }
}

/// Waits for all steps, and throws what they found.
void Model::Impl::settle() {
  for (const Sized& one : sized) {
    for (const Run& run : one.runs) {
      if (run.program != nullptr) run.program->wait();
    }
  }
  for (const Swept& swept : sweeps) {
    for (runtime::Program* const program : {swept.whole, swept.rest}) {
      if (program != nullptr) program->wait();
    }
  }
}

const std::vector<std::string>& Model::untrained() const noexcept { return impl_->untrained; }

void Model::close() {
  Impl& impl = *impl_;
  const Impl::Turn turn(impl, true);
  if (impl.set == nullptr) return;
  std::exception_ptr found;
  try {
    impl.settle();
  } catch (...) {
    found = std::current_exception();
  }
  for (Impl::Sized& one : impl.sized) {
    for (Impl::Run& run : one.runs) run.program = nullptr;
  }
  impl.set.reset();
  impl.sweeps.clear();
  impl.constants.clear();
  if (found) std::rethrow_exception(found);
}

const plan::StepPlan& Model::plan() const noexcept { return impl_->plan; }

void Model::print_plan(std::ostream& out) const {
  const Impl::Turn turn(*impl_);
  const std::size_t shown = impl_->trains() ? 0 : impl_->way("evaluate");
  impl_->set->print_table(out, impl_->largest().runs[shown].program->name());
}

const std::vector<std::string>& Model::copies() const noexcept { return impl_->copies; }

long Model::runs(std::string_view entry) const {
  const auto found = impl_->runs.find(entry);
  return found == impl_->runs.end() ? 0 : found->second;
}
long Model::evaluations() const noexcept { return runs("evaluate"); }
long Model::train_steps() const noexcept { return runs("train"); }

}  // namespace arenite
