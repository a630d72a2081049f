#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include "src/base/element.hpp"
#include "src/base/refuse.hpp"
#include "src/compile/compile.hpp"
#include "src/io/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace arenite {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

Port port_of(const graph::Value& value) { return {value.name, value.type, value.shape}; }

std::string names_of(const std::vector<Port>& ports) {
  std::string names;
  for (const Port& port : ports) names += (names.empty() ? "" : ", ") + port.name;
  return names.empty() ? "none" : names;
}

/// For each port its bytes, which are given under its name; the first `needed` must be there.
/// Allocates nothing the second time.
void match(const std::vector<Port>& ports, std::span<const NamedBytes> given, const char* what,
           std::size_t needed, std::vector<const NamedBytes*>& matched) {
  matched.assign(ports.size(), nullptr);
  for (const NamedBytes& bytes : given) {
    const auto port = std::ranges::find(ports, bytes.name, &Port::name);
    if (port == ports.end()) {
      refuse(std::string("an unknown ") + what + " '" + std::string(bytes.name) + "'",
             names_of(ports));
    }
    const NamedBytes*& slot = matched[static_cast<std::size_t>(port - ports.begin())];
    if (slot != nullptr) {
      refuse(std::string(what) + " '" + port->name + "' twice",
             std::string("each ") + what + " once");
    }
    if (bytes.data == nullptr && port->bytes() > 0) {
      refuse(std::string("null for the bytes of ") + what + " '" + port->name + "'",
             std::to_string(port->bytes()) + " bytes");
    }
    if (bytes.bytes && *bytes.bytes != port->bytes()) {
      refuse(
          std::to_string(*bytes.bytes) + " bytes of " + std::string(what) + " '" + port->name + "'",
          std::to_string(port->bytes()) + ", as it is " + std::string(to_string(port->type)) + " " +
              to_string(port->shape));
    }
    slot = &bytes;
  }
  for (std::size_t i = 0; i < needed; ++i) {
    if (matched[i] != nullptr) continue;
    refuse(std::string("no ") + what + " '" + ports[i].name + "'",
           "all of " + names_of({ports.begin(), ports.begin() + needed}));
  }
}

std::vector<Port> ports_of(const Graph& graph, StorageClass cls) {
  std::vector<Port> ports;
  for (const ValueId id : graph.declared(cls)) ports.push_back(port_of(graph[id]));
  return ports;
}

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
  std::vector<std::size_t> evaluation_pieces, training_pieces;  // as in Compiled
  std::vector<StatePort> states;
  std::map<std::string, std::vector<std::byte>> constants;  // outlive the programs
  std::vector<const NamedBytes*> given;                     // by input, in evaluate
  std::vector<std::string> copies;
  std::unique_ptr<runtime::ProgramSet> set;
  runtime::Program* evaluation = nullptr;
  runtime::Program* training = nullptr;  // null: there is none
  std::string position;                  // the input of `training` that counts; empty: none does
  std::int64_t samples = 0, drawn = 0;   // of a step, and of all steps so far

  void build(runtime::Session& session, Graph graph, const ModelOptions& options);
  void run(runtime::Program& program, std::span<const NamedBytes> from,
           std::span<void* const> places);
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
  for (Port& parameter : ports_of(graph, StorageClass::parameter))
    ports.push_back(std::move(parameter));
  std::vector<const NamedBytes*> given;
  match(ports, constants, "constant", needed, given);
  for (std::size_t i = 0; i < needed; ++i) {
    const auto* first = static_cast<const std::byte*>(given[i]->data);
    impl.constants[ports[i].name].assign(first, first + ports[i].bytes());
  }
  impl.build(session, std::move(graph), options);
  for (std::size_t i = needed; i < ports.size(); ++i) {
    if (given[i] == nullptr || ports[i].bytes() == 0) continue;
    std::memcpy(state(ports[i].name).data(), given[i]->data,
                static_cast<std::size_t>(ports[i].bytes()));
  }
}

void Model::Impl::build(runtime::Session& session, Graph graph, const ModelOptions& options) {
  const std::string training_name = options.name + ".train";
  const std::optional<graph::Training> trained = graph.training;
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
  };
  // First, for it has all states: every program is given the block that the layout is by then.
  if (trained) add({.name = training_name, .train = true}, training_pieces);
  add({.name = options.name}, evaluation_pieces);
  for (const auto& [op, reason] : graph::inserted_copies(specs.front().graph))
    copies.push_back(describe(specs.front().graph, op) + ": " + reason);
  for (const StorageClass cls :
       {StorageClass::parameter, StorageClass::optimizer_state, StorageClass::buffer}) {
    for (Port& port : ports_of(specs.front().graph, cls)) states.push_back({std::move(port), cls});
  }
  if (!position.empty())
    states.push_back({{position, DType::int64, Shape{1}}, StorageClass::buffer});
  for (runtime::ProgramSpec& spec : specs) {
    for (const auto& [name, bytes] : constants)
      spec.constants[name] = {bytes.data(), static_cast<std::int64_t>(bytes.size())};
  }
  set = std::make_unique<runtime::ProgramSet>(session, kernels(), std::move(specs));
  evaluation = &(*set)[options.name];
  if (!trained) return;
  training = &(*set)[training_name];
  set->state<float>(graph::learning_rate_name)[0] = static_cast<float>(trained->learning_rate);
}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::vector<Port>& Model::inputs() const noexcept { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const noexcept { return impl_->outputs; }

const std::vector<StatePort>& Model::states() const noexcept { return impl_->states; }
bool Model::is_trainable() const noexcept { return impl_->training != nullptr; }

void Model::evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  impl_->run(*impl_->evaluation, inputs, outputs);
}

void Model::train_step(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  if (!is_trainable()) refuse("a model whose script has no training", "one with a train statement");
  impl_->run(*impl_->training, inputs, outputs);
}

void Model::Impl::run(runtime::Program& program, std::span<const NamedBytes> from,
                      std::span<void* const> places) {
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
  if (&program == training && !position.empty()) {
    *program.input<std::int64_t>(position) = drawn;
    drawn += samples;
  }
  if (nobody_looks) {
    program.submit();
    return;
  }
  program.run({.steps = 1});
  const auto& pieces = &program == training ? training_pieces : evaluation_pieces;
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

std::span<std::byte> Model::state(std::string_view name) {
  impl_->evaluation->wait();
  if (is_trainable()) impl_->training->wait();
  if (!impl_->position.empty() && name == impl_->position)
    return std::as_writable_bytes(std::span(&impl_->drawn, 1));
  return impl_->set->state<std::byte>(name);
}

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
  }
  for (const StatePort& port : impl_->states) {
    const std::span<const std::byte> bytes = file.find(port.name)->bytes;
    std::ranges::copy(bytes, state(port.name).begin());
  }
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
