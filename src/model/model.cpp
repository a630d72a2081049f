#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include "src/base/element.hpp"
#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/compile/compile.hpp"
#include "src/io/safetensors.hpp"
#include "src/model/ports.hpp"

#include <algorithm>
#include <cstring>
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

void refuse_open_sizes(const Graph& graph) {
  const auto sizes = graph::run_time_sizes(graph);
  if (sizes.empty()) return;
  const auto& [name, bound] = sizes.front();
  refuse("the size '" + name + "', which only a run knows", "a graph of known sizes", {},
         "the model's options give them, as " + name + "=" + std::to_string(bound));
}

}  // namespace

struct Model::Impl {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::size_t> evaluation_pieces, training_pieces, averaged_pieces;  // as in Compiled
  std::vector<StatePort> states;
  std::vector<std::string> own_names;  // of the states, within their classes
  std::vector<std::string> untrained;
  std::map<std::string, std::vector<std::byte>> constants;  // outlive the programs
  std::vector<const NamedBytes*> given;                     // by input, in evaluate
  std::vector<std::string> copies;
  std::unique_ptr<runtime::ProgramSet> set;
  runtime::Program* evaluation = nullptr;
  runtime::Program *training = nullptr, *averaged = nullptr;  // null: there is none
  std::string position;                 // the input of `training` that counts; empty: none does
  std::int64_t samples = 0, drawn = 0;  // of a step, and of all steps so far

  void build(runtime::Session& session, Graph graph, const ModelOptions& options);
  void settle();
  std::span<std::byte> state(StorageClass cls, std::string_view name);
  std::size_t state_number(std::string_view name) const;
  void check_state(std::size_t number, std::span<const std::byte> bytes) const;
  void expect_training() const;
  std::span<std::byte> learning_rate();
  void run(runtime::Program& program, std::span<const NamedBytes> from,
           std::span<void* const> places, const std::vector<std::size_t>& pieces);
};

Model::Model(runtime::Session& session, Graph graph, std::span<const NamedBytes> constants,
             const ModelOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (!options.sizes.empty()) graph = graph::at_sizes(graph, options.sizes);
  refuse_open_sizes(graph);
  Impl& impl = *impl_;
  impl.inputs = ports_of(graph, StorageClass::input);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    impl.outputs.push_back(port_of(graph[graph.outputs[i]]));
    if (!graph[graph.outputs[i]].is_declared())
      impl.outputs[i].name = "output_" + std::to_string(i);
  }
  std::vector<Port> ports = ports_of(graph, StorageClass::constant);
  const std::size_t needed = ports.size();
  const std::vector<Kept> kept = kept_of(graph, ports);
  for (const Kept& one : kept) ports.push_back(one.port);
  std::vector<const NamedBytes*> given;
  match(ports, constants, "constant", needed, given);
  for (std::size_t i = 0; i < needed; ++i) {
    const auto* first = static_cast<const std::byte*>(given[i]->data);
    impl.constants[ports[i].name].assign(first, first + ports[i].bytes());
  }
  impl.build(session, std::move(graph), options);
  for (std::size_t i = needed; i < ports.size(); ++i) {
    if (given[i] == nullptr || ports[i].bytes() == 0) continue;
    const Kept& one = kept[i - needed];
    std::memcpy(impl.state(one.port.cls, one.own).data(), given[i]->data,
                static_cast<std::size_t>(ports[i].bytes()));
  }
}

void Model::Impl::build(runtime::Session& session, Graph graph, const ModelOptions& options) {
  const std::string training_name = options.name + ".train";
  const bool trained = graph.training.has_value(),
             has_averages = trained && graph.training->averaging.has_value();
  const std::vector<Port> constant_ports = ports_of(graph, StorageClass::constant);
  const compile::Options how{
      .spaces = spaces_of(session, options.device),
      .shards = options.shards,
      .lanes = options.lanes,
      .at_once = options.shards_at_once,
      .workers = session.workers(),
      .kernels = {.compute = options.compute, .without = options.cudnn ? "" : "cudnn"},
      .target = options.target};
  plan::StateLayout state;
  std::vector<runtime::ProgramSpec> specs;
  const auto add = [&](const compile::Entry& entry, std::vector<std::size_t>& pieces) {
    compile::Compiled compiled = compile::compile(graph, entry, how, state);
    specs.push_back(std::move(compiled.spec));
    if (entry.train) {
      position = std::move(compiled.position);
      samples = compiled.samples;
    }
    pieces = std::move(compiled.pieces);
    if (entry.train) untrained = std::move(compiled.untrained);
  };
  // First, for it has all states: every program is given the block that the layout is by then.
  if (trained) add({.name = training_name, .train = true}, training_pieces);
  add({.name = options.name}, evaluation_pieces);
  const std::string averaged_name = options.name + ".averaged";
  if (has_averages) add({.name = averaged_name, .averaged = true}, averaged_pieces);
  for (const auto& [op, reason] : graph::inserted_copies(specs.front().graph))
    copies.push_back(describe(specs.front().graph, op) + ": " + reason);
  for (Kept& one : kept_of(specs.front().graph, constant_ports)) {
    states.push_back(std::move(one.port));
    own_names.push_back(std::move(one.own));
  }
  if (!position.empty()) {
    states.push_back({{position, DType::int64, Shape{1}}, StorageClass::buffer});
    own_names.emplace_back();  // which is counted here
  }
  for (runtime::ProgramSpec& spec : specs) {
    for (const auto& [name, bytes] : constants)
      spec.constants[name] = {bytes.data(), static_cast<std::int64_t>(bytes.size())};
  }
  set = std::make_unique<runtime::ProgramSet>(session, kernels(), std::move(specs),
                                              runtime::ProgramOptions{.seed = options.seed});
  evaluation = &(*set)[options.name];
  if (trained) training = &(*set)[training_name];
  if (has_averages) averaged = &(*set)[averaged_name];
}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::vector<Port>& Model::inputs() const noexcept { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const noexcept { return impl_->outputs; }

const std::vector<StatePort>& Model::states() const noexcept { return impl_->states; }
bool Model::is_trainable() const noexcept { return impl_->training != nullptr; }

void Model::evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  impl_->run(*impl_->evaluation, inputs, outputs, impl_->evaluation_pieces);
}

void Model::evaluate_averaged(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  Impl& impl = *impl_;
  if (impl.averaged == nullptr) {
    refuse("means of parameters asked for, where training makes none",
           "a train statement that averages");
  }
  std::int64_t steps = 0;
  std::memcpy(&steps, impl.state(StorageClass::optimizer_state, graph::step_name).data(),
              sizeof steps);
  if (steps == 0) compile::begin_averages(*impl.set, impl.training->spec().graph);
  impl.run(*impl.averaged, inputs, outputs, impl.averaged_pieces);
}

void Model::train_step(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  impl_->expect_training();
  impl_->run(*impl_->training, inputs, outputs, impl_->training_pieces);
}

void Model::Impl::run(runtime::Program& program, std::span<const NamedBytes> from,
                      std::span<void* const> places, const std::vector<std::size_t>& pieces) {
  match(inputs, from, "input", inputs.size(), given);
  const bool nobody_looks = &program == training && places.empty();
  if (places.size() != outputs.size() && !nobody_looks) {
    refuse(std::to_string(places.size()) + " places for outputs",
           std::to_string(outputs.size()) + ": " + names_of(outputs));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != nullptr || outputs[i].bytes() == 0) continue;
    refuse("null for output '" + outputs[i].name + "'",
           "a place of " + std::to_string(outputs[i].bytes()) + " bytes");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    with_element(inputs[i].type, [&](auto element) {
      if (inputs[i].bytes() == 0) return;
      std::memcpy(program.input<decltype(element)>(inputs[i].name), given[i]->data,
                  static_cast<std::size_t>(inputs[i].bytes()));
    });
  }
  const bool counts = &program == training && !position.empty();
  if (counts) *program.input<std::int64_t>(position) = drawn;
  if (nobody_looks) {
    program.submit();
    if (counts) drawn += samples;
    return;
  }
  program.run({.steps = 1});
  if (counts) drawn += samples;
  std::size_t next = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    auto* place = static_cast<std::byte*>(places[i]);
    for (const std::size_t end = next + pieces[i]; next < end; ++next) {
      with_element(outputs[i].type, [&](auto element) {
        const auto values = program.output<decltype(element)>(next);
        if (!values.empty()) std::memcpy(place, values.data(), values.size_bytes());
        place += values.size_bytes();
      });
    }
  }
}

/// Waits for all steps, and throws what they found.
void Model::Impl::settle() {
  evaluation->wait();
  if (training != nullptr) training->wait();
  if (averaged != nullptr) averaged->wait();
}

std::span<std::byte> Model::Impl::state(StorageClass cls, std::string_view name) {
  settle();
  return set->state<std::byte>(cls, name);
}

std::size_t Model::Impl::state_number(std::string_view name) const {
  const auto found = std::ranges::find(states, name, &StatePort::name);
  if (found != states.end()) return static_cast<std::size_t>(found - states.begin());
  Nearest nearest(name);
  for (const StatePort& one : states) nearest.consider(one.name);
  refuse("no state named '" + std::string(name) + "'", "a parameter, optimizer state or buffer", {},
         nearest.hint());
}

/// What only some bytes may be.
void Model::Impl::check_state(std::size_t number, std::span<const std::byte> bytes) const {
  const std::string& name = own_names[number];
  const StorageClass cls = states[number].cls;
  if (training == nullptr) return;
  if (cls == StorageClass::buffer && name == graph::learning_rate_name) {
    float rate = 0;
    std::memcpy(&rate, bytes.data(), sizeof rate);
    graph::check_learning_rate(rate);
  }
  if (name.empty() || (cls == StorageClass::optimizer_state && name == graph::step_name)) {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    std::int64_t count = 0;
    std::memcpy(&count, bytes.data(), sizeof count);
    if (count < 0 || count > most) {
      refuse("'" + states[number].name + "' of " + std::to_string(count),
             "a number that counts from 0 on");
    }
  }
}

std::span<std::byte> Model::state(std::string_view name) {
  const std::size_t number = impl_->state_number(name);
  if (impl_->own_names[number].empty()) {
    impl_->settle();
    return std::as_writable_bytes(std::span(&impl_->drawn, 1));
  }
  return impl_->state(impl_->states[number].cls, impl_->own_names[number]);
}

void Model::set_state(std::string_view name, std::span<const std::byte> bytes) {
  const std::span<std::byte> place = state(name);
  if (bytes.size() != place.size()) {
    refuse(std::to_string(bytes.size()) + " bytes of state '" + std::string(name) + "'",
           std::to_string(place.size()));
  }
  impl_->check_state(impl_->state_number(name), bytes);
  std::ranges::copy(bytes, place.begin());
}

void Model::Impl::expect_training() const {
  if (training != nullptr) return;
  refuse("a model whose script has no training", "one with a train statement");
}

std::span<std::byte> Model::Impl::learning_rate() {
  expect_training();
  return state(StorageClass::buffer, graph::learning_rate_name);
}

float Model::learning_rate() {
  float rate = 0;
  std::memcpy(&rate, impl_->learning_rate().data(), sizeof rate);
  return rate;
}

void Model::set_learning_rate(float rate) {
  const std::span<std::byte> place = impl_->learning_rate();
  graph::check_learning_rate(rate);
  std::memcpy(place.data(), &rate, sizeof rate);
}

const std::vector<std::string>& Model::untrained() const noexcept { return impl_->untrained; }

void Model::save(const std::filesystem::path& path) {
  std::vector<io::NamedTensor> tensors;
  for (const StatePort& port : impl_->states)
    tensors.push_back({port.name, port.type, port.shape, state(port.name)});
  io::save_tensors(path, tensors);
}

void Model::load(const std::filesystem::path& path) {
  const io::TensorFile file(path);
  for (const io::NamedTensor& tensor : file.tensors()) {
    if (std::ranges::find(impl_->states, tensor.name, &StatePort::name) == impl_->states.end())
      refuse("'" + tensor.name + "'", "only what this model keeps", path.string());
  }
  for (const StatePort& port : impl_->states) {
    const io::NamedTensor* tensor = file.find(port.name);
    const std::string wanted = std::string(to_string(port.type)) + " " + to_string(port.shape);
    if (tensor == nullptr) {
      refuse("no '" + port.name + "'", wanted + " of that name, which this model keeps",
             path.string());
    }
    if (tensor->type != port.type || tensor->shape != port.shape) {
      refuse("'" + port.name + "' as " + std::string(to_string(tensor->type)) + " " +
                 to_string(tensor->shape),
             wanted + ", as in this model", path.string());
    }
    impl_->check_state(impl_->state_number(port.name), tensor->bytes);
  }
  for (const StatePort& port : impl_->states) set_state(port.name, file.find(port.name)->bytes);
}

const plan::StepPlan& Model::plan() const noexcept {
  return (is_trainable() ? impl_->training : impl_->evaluation)->spec().plan;
}
void Model::print_plan(std::ostream& out) const {
  impl_->set->print_table(out, (is_trainable() ? impl_->training : impl_->evaluation)->name());
}
const std::vector<std::string>& Model::copies() const noexcept { return impl_->copies; }
long Model::evaluations() const noexcept { return impl_->evaluation->steps(); }
long Model::train_steps() const noexcept { return is_trainable() ? impl_->training->steps() : 0; }

}  // namespace arenite
