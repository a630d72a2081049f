// Which programs a model has: those of the largest sizes from the beginning, others as they are
// asked for.
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include "src/base/refuse.hpp"
#include "src/model/model_impl.hpp"
#include "src/model/ports.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace arenite {
namespace {

using graph::SizeValues;
using graph::StorageClass;

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
};

/// Of those given, the others at their bounds.
bool are(const SizeValues& sizes, const SizeValues& given, const SizeValues& bounds) {
  std::size_t known = 0;
  const bool equal = std::ranges::all_of(sizes, [&](const auto& size) {
    const auto found = given.find(size.first);
    known += found != given.end() ? 1 : 0;
    return size.second == (found != given.end() ? found->second : bounds.at(size.first));
  });
  return equal && known == given.size();
}

std::vector<Port> outputs_of(const graph::Graph& graph) {
  std::vector<Port> ports;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const graph::Value& value = graph[graph.outputs[i]];
    ports.push_back(port_of(value));
    if (!value.is_declared()) ports.back().name = "output_" + std::to_string(i);
  }
  return ports;
}

}  // namespace

void Model::Impl::bind_constants(runtime::ProgramSpec& spec) const {
  for (const auto& [name, bytes] : constants)
    spec.constants[name] = {bytes.data(), static_cast<std::int64_t>(bytes.size())};
}

void Model::Impl::build() {
  const graph::Graph& graph = plans.graph();
  Sized& first = sized.emplace_back(Sized{.sizes = plans.bounds(),
                                          .graph = {},
                                          .inputs = ports_of(graph, StorageClass::input),
                                          .outputs = outputs_of(graph)});
  std::vector<runtime::ProgramSpec> specs;
  std::vector<std::pair<Run*, std::string>> made;
  for (const Entry entry : plans.entries()) {
    const Stopwatch watch;
    compile::Compiled compiled = plans.largest(entry);
    if (entry == Entry::train) {
      position = std::move(compiled.position);
      untrained = std::move(compiled.untrained);
    }
    Run& run = first.runs[static_cast<std::size_t>(entry)];
    run.pieces = std::move(compiled.pieces);
    run.samples = compiled.samples;
    run.milliseconds = watch.milliseconds();
    made.emplace_back(&run, compiled.spec.name);
    bind_constants(compiled.spec);
    specs.push_back(std::move(compiled.spec));
  }
  const runtime::ProgramSpec& step = specs.front();
  plan = step.plan;
  for (const auto& [op, reason] : graph::inserted_copies(step.graph))
    copies.push_back(describe(step.graph, op) + ": " + reason);
  for (Kept& one : kept_of(step.graph, ports_of(graph, StorageClass::constant))) {
    states.push_back(std::move(one.port));
    own_names.push_back(std::move(one.own));
  }
  if (!position.empty()) {
    states.push_back({{position, DType::int64, Shape{1}}, StorageClass::buffer});
    own_names.emplace_back();  // which is counted here
  }
  const Stopwatch watch;
  set = made_set(std::move(specs));
  for (auto& [run, name] : made) {
    run->program = &(*set)[name];
    run->milliseconds += watch.milliseconds() / static_cast<double>(made.size());
  }
}

std::unique_ptr<runtime::ProgramSet> Model::Impl::made_set(
    std::vector<runtime::ProgramSpec> specs) {
  runtime::Session session;  // that which runs
  return std::make_unique<runtime::ProgramSet>(
      session, kernels(), std::move(specs),
      runtime::ProgramOptions{.seed = seed, .room = plans.room()});
}

/// To what `plans` has room for. States stay what they are; programs of smaller sizes are dropped.
void Model::Impl::grow_blocks() {
  settle();
  std::vector<runtime::ProgramSpec> specs;
  for (const Run& run : largest().runs) {
    if (run.program != nullptr) specs.push_back(run.program->spec());
  }
  std::unique_ptr<runtime::ProgramSet> grown = made_set(std::move(specs));
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (own_names[i].empty()) continue;  // counted here
    const StorageClass cls = states[i].cls;
    std::ranges::copy(set->state<std::byte>(cls, own_names[i]),
                      grown->state<std::byte>(cls, own_names[i]).begin());
  }
  for (Sized& one : sized) {
    for (Run& run : one.runs) {
      if (run.program != nullptr)
        run.program = &one == &largest() ? &(*grown)[run.program->name()] : nullptr;
    }
  }
  set = std::move(grown);
}

Model::Impl::Sized& Model::Impl::at(const SizeValues& sizes) {
  const auto found = std::ranges::find_if(
      sized, [&](const Sized& one) { return are(one.sizes, sizes, plans.bounds()); });
  Sized& taken = found != sized.end() ? *found : make_sizes(sizes);
  taken.last_used = ++uses;
  return taken;
}

Model::Impl::Sized& Model::Impl::make_sizes(const SizeValues& sizes) {
  graph::Graph graph = plans.graph_at(sizes);  // throws, before anything is dropped
  SizeValues all = plans.bounds();
  for (const auto& [name, size] : sizes) all[name] = size;
  make_room();
  Sized& made = sized.emplace_back(Sized{.sizes = std::move(all),
                                         .graph = {},
                                         .inputs = ports_of(graph, StorageClass::input),
                                         .outputs = outputs_of(graph)});
  made.graph = std::move(graph);
  return made;
}

/// For one more: of smaller sizes, those that were used last stay.
void Model::Impl::make_room() {
  while (std::ssize(sized) > std::max(sizes_kept, 1)) {
    settle();
    const auto oldest =
        std::ranges::min_element(std::next(sized.begin()), sized.end(), {}, &Sized::last_used);
    for (const Run& run : oldest->runs) {
      if (run.program != nullptr) set->remove(run.program->name());
    }
    sized.erase(oldest);
  }
}

/// With its program, which is built where there is none.
Model::Impl::Run& Model::Impl::run_of(Sized& one, Entry entry) {
  Run& run = one.runs[static_cast<std::size_t>(entry)];
  if (run.program != nullptr) return run;
  const Stopwatch watch;
  ModelPlans::Sized made = plans.smaller(entry, one.sizes, *one.graph);
  if (made.fit == Fit::grown_blocks) grow_blocks();
  bind_constants(made.program.spec);
  run.pieces = std::move(made.program.pieces);
  run.samples = made.program.samples;
  run.fit = made.fit;
  run.program = &set->add(std::move(made.program.spec));
  run.milliseconds = watch.milliseconds();
  return run;
}

std::vector<ModelProgram> Model::programs() const {
  const Impl& impl = *impl_;
  std::vector<ModelProgram> all;
  for (const Impl::Sized& sized : impl.sized) {
    for (std::size_t entry = 0; entry < sized.runs.size(); ++entry) {
      const Impl::Run& run = sized.runs[entry];
      if (run.program == nullptr) continue;
      all.push_back({.entry = std::string(to_string(static_cast<ModelPlans::Entry>(entry))),
                     .sizes = sized.sizes,
                     .arena_bytes = run.program->spec().plan.transient_bytes(),
                     .fit = std::string(to_string(run.fit)),
                     .milliseconds = run.milliseconds,
                     .runs = run.program->steps()});
    }
  }
  return all;
}

void Model::prepare(const SizeValues& sizes) {
  const Impl::Turn turn(*impl_);
  Impl::Sized& sized = impl_->at(sizes);
  for (const ModelPlans::Entry entry : impl_->plans.entries()) impl_->run_of(sized, entry);
}

std::vector<graph::RunTimeSize> Model::open_sizes() const {
  return graph::run_time_sizes(impl_->plans.graph());
}

std::vector<Port> Model::inputs(const SizeValues& sizes) const {
  return ports_of(impl_->plans.graph_at(sizes), StorageClass::input);
}

std::vector<Port> Model::outputs(const SizeValues& sizes) const {
  return outputs_of(impl_->plans.graph_at(sizes));
}

}  // namespace arenite
