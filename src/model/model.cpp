#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

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

/// For each port its bytes, which are given under its name. Allocates nothing the second time.
void match(const std::vector<Port>& ports, std::span<const NamedBytes> given, const char* what,
           std::vector<const NamedBytes*>& matched) {
  matched.assign(ports.size(), nullptr);
  for (const NamedBytes& bytes : given) {
    const auto port = std::find_if(ports.begin(), ports.end(),
                                   [&](const Port& p) { return p.name == bytes.name; });
    if (port == ports.end()) {
      fail({.found = std::string("an unknown ") + what + " '" + std::string(bytes.name) + "'",
            .expected = names_of(ports)});
    }
    const NamedBytes*& slot = matched[static_cast<std::size_t>(port - ports.begin())];
    if (slot != nullptr) {
      fail({.found = std::string(what) + " '" + port->name + "' twice",
            .expected = std::string("each ") + what + " once"});
    }
    if (bytes.data == nullptr && port->bytes() > 0) {
      fail({.found = std::string("null for the bytes of ") + what + " '" + port->name + "'",
            .expected = std::to_string(port->bytes()) + " bytes"});
    }
    if (bytes.bytes && *bytes.bytes != port->bytes()) {
      fail({.found = std::to_string(*bytes.bytes) + " bytes of " + std::string(what) + " '" +
                     port->name + "'",
            .expected = std::to_string(port->bytes()) + ", as it is " +
                        std::string(to_string(port->type)) + " " + to_string(port->shape)});
    }
    slot = &bytes;
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (matched[i] != nullptr) continue;
    fail({.found = std::string("no ") + what + " '" + ports[i].name + "'",
          .expected = "all of " + names_of(ports)});
  }
}

std::vector<Port> ports_of(const Graph& graph, StorageClass cls) {
  std::vector<Port> ports;
  for (const ValueId id : graph.declared(cls)) ports.push_back(port_of(graph[id]));
  return ports;
}

void refuse_open_sizes(const Graph& graph) {
  const auto sizes = graph::run_time_sizes(graph);
  if (sizes.empty()) return;
  fail({.found = "the size '" + sizes.front().name + "', which only a run knows",
        .expected = "a graph of known sizes",
        .hint = "graph::at_sizes makes one"});
}

/// The bytes of an element type as the program hands them out.
template <class F>
decltype(auto) with_type(DType type, F f) {
  switch (type) {
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::uint8:
      break;
  }
  return f(std::uint8_t{});
}

}  // namespace

struct Model::Impl {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::map<std::string, std::vector<std::byte>> constants;  // outlive the programs
  std::vector<const NamedBytes*> given;                     // by input, in evaluate
  std::unique_ptr<runtime::ProgramSet> set;
  runtime::Program* program = nullptr;
};

Model::Model(runtime::Session& session, Graph graph, std::span<const NamedBytes> constants,
             const ModelOptions& options)
    : impl_(std::make_unique<Impl>()) {
  refuse_open_sizes(graph);
  Impl& impl = *impl_;
  impl.inputs = ports_of(graph, StorageClass::input);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    impl.outputs.push_back(port_of(graph[graph.outputs[i]]));
    if (!graph[graph.outputs[i]].is_declared())
      impl.outputs[i].name = "output_" + std::to_string(i);
  }
  runtime::ProgramSpec spec{
      .name = options.name, .graph = std::move(graph), .target = options.target};
  const std::vector<Port> wanted = ports_of(spec.graph, StorageClass::constant);
  std::vector<const NamedBytes*> given;
  match(wanted, constants, "constant", given);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto* first = static_cast<const std::byte*>(given[i]->data);
    auto& bytes = impl.constants[wanted[i].name];
    bytes.assign(first, first + wanted[i].bytes());
    spec.constants[wanted[i].name] = {bytes.data(), wanted[i].bytes()};
  }

  graph::fuse(spec.graph, operators());
  graph::keep_buffers(spec.graph, operators());
  graph::select(spec.graph, *runtime::kernel_selector(kernels()));
  graph::in_place(spec.graph);
  spec.schedule = graph::coarsen(spec.graph, spec.target);
  plan::StateLayout state;
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state, {.solve = {}});

  std::vector<runtime::ProgramSpec> specs;
  specs.push_back(std::move(spec));
  impl.set = std::make_unique<runtime::ProgramSet>(session, kernels(), std::move(specs));
  impl.program = &(*impl.set)[options.name];
}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::vector<Port>& Model::inputs() const noexcept { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const noexcept { return impl_->outputs; }

void Model::evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs) {
  const std::vector<Port>& ins = impl_->inputs;
  const std::vector<Port>& outs = impl_->outputs;
  auto& given = impl_->given;
  match(ins, inputs, "input", given);
  if (outputs.size() != outs.size()) {
    fail({.found = std::to_string(outputs.size()) + " places for outputs",
          .expected = std::to_string(outs.size()) + ": " + names_of(outs)});
  }
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (outputs[i] != nullptr || outs[i].bytes() == 0) continue;
    fail({.found = "null for output '" + outs[i].name + "'",
          .expected = "a place of " + std::to_string(outs[i].bytes()) + " bytes"});
  }
  runtime::Program& program = *impl_->program;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    with_type(ins[i].type, [&](auto element) {
      if (ins[i].bytes() == 0) return;
      std::memcpy(program.input<decltype(element)>(ins[i].name), given[i]->data,
                  static_cast<std::size_t>(ins[i].bytes()));
    });
  }
  program.submit();
  program.wait();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    with_type(outs[i].type, [&](auto element) {
      const auto values = program.output<decltype(element)>(i);
      if (!values.empty()) std::memcpy(outputs[i], values.data(), values.size_bytes());
    });
  }
}

std::span<std::byte> Model::state(std::string_view name) {
  return impl_->set->state<std::byte>(name);
}

const plan::StepPlan& Model::plan() const noexcept { return impl_->program->spec().plan; }
void Model::print_plan(std::ostream& out) const {
  impl_->set->print_table(out, impl_->program->name());
}
long Model::evaluations() const noexcept { return impl_->program->steps(); }

}  // namespace arenite
