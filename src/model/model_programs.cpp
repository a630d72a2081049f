// Which programs a model has: those of the largest sizes from the beginning, others as they are
// asked for.
#include <arenite/graph/entries.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/model/model_impl.hpp"
#include "src/model/ports.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <tuple>
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

std::vector<Port> output_ports(const graph::Graph& graph) {
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
  Sized& first = sized.emplace_back(
      Sized{.sizes = plans.bounds(), .runs = std::vector<Run>(plans.ways().size())});
  std::vector<runtime::ProgramSpec> specs;
  std::vector<std::pair<Run*, std::string>> made;
  for (std::size_t i = 0; i < first.runs.size(); ++i) {
    const Way& way = plans.ways()[i];
    if (way.is_rare) continue;
    const Stopwatch watch;
    compile::Compiled compiled = plans.largest(way);
    Run& run = first.runs[i];
    run.position = std::move(compiled.position);
    if (i == 0) untrained = std::move(compiled.untrained);
    std::tie(run.inputs, run.outputs) = ports_at(plans.entries()[way.entry], {});
    run.pieces = std::move(compiled.pieces);
    run.samples = compiled.samples;
    run.milliseconds = watch.milliseconds();
    made.emplace_back(&run, compiled.spec.name);
    bind_constants(compiled.spec);
    specs.push_back(std::move(compiled.spec));
  }
  drawn.assign(plans.entries().size(), 0);
  const runtime::ProgramSpec& step = specs.front();
  plan = step.plan;
  for (const auto& [op, reason] : graph::inserted_copies(step.graph))
    copies.push_back(describe(step.graph, op) + ": " + reason);
  for (Kept& one : kept_of(step.graph, ports_of(plans.graph(), StorageClass::constant))) {
    states.push_back(std::move(one.port));
    own_names.push_back(std::move(one.own));
  }
  if (trains()) count_states(first.runs[0].position);
  const Stopwatch watch;
  set = made_set(std::move(specs), plans.room());
  for (auto& [run, name] : made) {
    run->program = &(*set)[name];
    run->milliseconds += watch.milliseconds() / static_cast<double>(made.size());
  }
}

/// What of training is counted here is a state as well.
void Model::Impl::count_states(const std::string& position) {
  const auto count = [&](std::string name, std::span<std::int64_t> numbers) {
    while (std::ranges::find(states, name, &StatePort::name) != states.end()) name += "'";
    counted[states.size()] = numbers;
    states.push_back(
        {{std::move(name), DType::int64, Shape{std::ssize(numbers)}}, StorageClass::buffer});
    own_names.emplace_back();
  };
  batches[1] = plans.graph().training->accumulate;
  if (batches[1] > 1) count("accumulated", batches);
  if (!position.empty()) count(position, std::span(drawn).first(1));
}

bool Model::Impl::waits(std::size_t number) const {
  if (own_names[number].empty()) return counted.at(number).data() == batches.data();
  if (!trains() || states[number].cls != StorageClass::optimizer_state) return false;
  const graph::Graph& graph = plans.graph();
  return std::ranges::any_of(graph.training->parameters, [&](graph::ValueId parameter) {
    for (int i = 0; 1 << i < graph.training->accumulate; ++i) {
      if (own_names[number] == graph::waiting_name(graph[parameter].name, i)) return true;
    }
    return false;
  });
}

std::unique_ptr<runtime::ProgramSet> Model::Impl::made_set(
    std::vector<runtime::ProgramSpec> specs, std::vector<runtime::BlockRoom> room) const {
  runtime::Session session;  // that which runs
  return std::make_unique<runtime::ProgramSet>(
      session, kernels(), std::move(specs),
      runtime::ProgramOptions{.record = record, .seed = seed, .room = std::move(room)});
}

/// Calls f(program) of each that stays when blocks grow.
template <class F>
void Model::Impl::for_each_kept(const F& f) {
  const auto visit = [&](runtime::Program*& program) {
    if (program != nullptr) f(program);
  };
  if (!sized.empty()) {
    for (Run& run : largest().runs) visit(run.program);
  }
  for (Swept& swept : sweeps) {
    visit(swept.whole);
    visit(swept.rest);
  }
}

/// Of all these programs, each name once.
void Model::Impl::for_each_persistent(const std::function<void(const plan::Placement&)>& f) {
  std::set<std::pair<StorageClass, std::string>> seen;
  for_each_kept([&](const runtime::Program* program) {
    for (const plan::Placement& place : program->spec().plan.placements) {
      if (graph::is_persistent(place.cls) && seen.emplace(place.cls, place.name).second) f(place);
    }
  });
}

/// Some program that stays has the state. Allocates nothing.
bool Model::Impl::keeps(StorageClass cls, std::string_view name) {
  bool found = false;
  for_each_kept([&](const runtime::Program* program) {
    const auto& places = program->spec().plan.placements;
    found = found || std::ranges::any_of(places, [&](const plan::Placement& place) {
              return place.cls == cls && place.name == name;
            });
  });
  return found;
}

/// States stay what they are; programs of smaller sizes are dropped, and there are `more`. What
/// there was is freed first, for both might be more than the memory that there is, and made again
/// where memory is refused.
void Model::Impl::grow_blocks(std::vector<runtime::BlockRoom> room,
                              std::vector<runtime::ProgramSpec> more) {
  settle();
  std::map<std::pair<StorageClass, std::string>, std::vector<std::byte>> persistent;
  for_each_persistent([&](const plan::Placement& place) {
    const auto bytes = set->state<std::byte>(place.cls, place.name);
    persistent[{place.cls, place.name}].assign(bytes.begin(), bytes.end());
  });
  std::vector<std::pair<runtime::Program**, runtime::ProgramSpec>> kept;
  for_each_kept([&](runtime::Program*& program) { kept.emplace_back(&program, program->spec()); });
  for (Sized& one : sized) {
    if (&one == &largest()) continue;
    for (Run& run : one.runs) run.program = nullptr;
  }
  const auto make = [&](std::vector<runtime::BlockRoom> with,
                        std::vector<runtime::ProgramSpec> others) {
    for (const auto& [program, spec] : kept) others.push_back(spec);
    if (others.empty()) return;
    set = made_set(std::move(others), std::move(with));
    for (const auto& [program, spec] : kept) *program = &(*set)[spec.name];
    for (const auto& [state, bytes] : persistent)
      std::ranges::copy(bytes, set->state<std::byte>(state.first, state.second).begin());
  };
  set.reset();
  for (const auto& [program, spec] : kept) *program = nullptr;
  try {
    make(room, std::move(more));
  } catch (...) {
    make(plans.room(), {});
    throw;
  }
  plans.set_room(std::move(room));
}

/// All of them, or none; where they do not fit the blocks grow.
void Model::Impl::add_programs(std::vector<runtime::ProgramSpec> specs, bool fit) {
  if (!fit) {
    std::vector<runtime::BlockRoom> room = plans.room_with(specs);
    return grow_blocks(std::move(room), std::move(specs));
  }
  std::vector<std::string> added;
  try {
    for (runtime::ProgramSpec& spec : specs) added.push_back(set->add(std::move(spec)).name());
  } catch (...) {
    for (const std::string& name : added) set->remove(name);
    throw;
  }
}

/// Whether samples of so many bytes in all stay in the memory of GPUs: where they leave most of
/// each to others, unless somebody has said.
bool Model::Impl::draws_on_devices(std::int64_t bytes) const {
  const auto is_cpu = [](const Space& space) { return space.device == DeviceKind::cpu; };
  const std::vector<Space>& spaces = plans.spaces();
  if (std::ranges::all_of(spaces, is_cpu)) return false;
  return resident_data.value_or(std::ranges::all_of(
      spaces, [&](const Space& space) { return is_cpu(space) || bytes <= space.capacity / 4; }));
}

/// Null: they are new.
Model::Impl::Sized* Model::Impl::find(const SizeValues& sizes) {
  const auto found = std::ranges::find_if(
      sized, [&](const Sized& one) { return are(one.sizes, sizes, plans.bounds()); });
  return found == sized.end() ? nullptr : &*found;
}

/// Those that there are, or new ones, which somebody has found to be in order.
Model::Impl::Sized& Model::Impl::at(const SizeValues& sizes) {
  Sized* const known = find(sizes);
  Sized& taken = known != nullptr ? *known : make_sizes(sizes);
  taken.last_used = ++uses;
  return taken;
}

Model::Impl::Sized& Model::Impl::make_sizes(const SizeValues& sizes) {
  SizeValues all = plans.bounds();
  for (const auto& [name, size] : sizes) all[name] = size;
  make_room();
  return sized.emplace_back(
      Sized{.sizes = std::move(all), .runs = std::vector<Run>(plans.ways().size())});
}

/// Sizes of which no program could be built.
void Model::Impl::drop_unbuilt() {
  std::erase_if(sized, [](const Sized& one) {
    return std::ranges::all_of(one.runs, [](const Run& run) { return run.program == nullptr; });
  });
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

/// With its program, which is built where there is none; by the number of its way.
Model::Impl::Run& Model::Impl::run_of(Sized& one, std::size_t number) {
  Run& run = one.runs[number];
  if (run.program != nullptr) return run;
  try {
    const Stopwatch watch;
    const Way& way = plans.ways()[number];
    ModelPlans::Sized made = plans.smaller(way, one.sizes);
    std::tie(run.inputs, run.outputs) = ports_at(plans.entries()[way.entry], one.sizes);
    if (made.fit == Fit::grown_blocks) grow_blocks(plans.room_with({&made.program.spec, 1}));
    bind_constants(made.program.spec);
    run.pieces = std::move(made.program.pieces);
    run.position = std::move(made.program.position);
    run.samples = made.program.samples;
    run.fit = made.fit;
    run.program = &set->add(std::move(made.program.spec));
    run.milliseconds = watch.milliseconds();
  } catch (...) {
    drop_unbuilt();
    throw;
  }
  return run;
}

std::vector<ModelProgram> Model::programs() const {
  const Impl::Turn turn(*impl_, true);
  const Impl& impl = *impl_;
  std::vector<ModelProgram> all;
  for (const Impl::Sized& sized : impl.sized) {
    for (std::size_t way = 0; way < sized.runs.size(); ++way) {
      const Impl::Run& run = sized.runs[way];
      if (run.program == nullptr) continue;
      all.push_back({.entry = impl.plans.ways()[way].name,
                     .sizes = sized.sizes,
                     .arena_bytes = run.program->spec().plan.transient_bytes(),
                     .fit = std::string(to_string(run.fit)),
                     .milliseconds = run.milliseconds,
                     .runs = run.count});
    }
  }
  return all;
}

std::size_t Model::Impl::entry(std::string_view name) const {
  const std::vector<std::string>& entries = plans.entries();
  const auto found = std::ranges::find(entries, name);
  if (found != entries.end()) return static_cast<std::size_t>(found - entries.begin());
  Nearest nearest(name);
  std::string known;
  for (const std::string& entry : entries) {
    nearest.consider(entry);
    known += (known.empty() ? "" : ", ") + entry;
  }
  refuse("no entry '" + std::string(name) + "'", "one of " + known, {}, nearest.hint());
}

std::size_t Model::Impl::way(std::string_view name) const {
  if (!trains()) return plans.way(entry(name), 0);
  const int most = plans.graph().training->accumulate;
  if (most > 1) check_batches("accumulated", batches);
  if (name == "accumulate" && most == 1) {
    refuse("a batch to accumulate, where each has an update of its own", "a step of training", {},
           "train(…, accumulate=4) lets one update take up to 4");
  }
  if (name == "accumulate" && batches[0] + 1 == most) {
    refuse("one more batch to accumulate, behind " + std::to_string(batches[0]),
           "an update by a step of training, as it takes " + std::to_string(most) + " batches");
  }
  return plans.way(entry(name), batches[0]);
}

/// What goes into an entry and comes out of it.
std::pair<std::vector<Port>, std::vector<Port>> Model::Impl::ports_at(
    const std::string& entry, const SizeValues& sizes) const {
  const graph::Graph graph = plans.graph_of(entry, sizes);
  // What trains and evaluates is given all that the graph declares, for one call does for both.
  const bool all = !plans.is_own(entry);
  std::vector<Port> inputs;
  for (const graph::ValueId id : all ? graph.declared(StorageClass::input) : inputs_read(graph))
    inputs.push_back(port_of(graph[id]));
  return {std::move(inputs), output_ports(graph)};
}

void Model::prepare(const SizeValues& sizes) {
  const Impl::Turn turn(*impl_);
  for (const std::string& entry : impl_->plans.entries())
    static_cast<void>(impl_->ports_at(entry, sizes));  // throws, before anything is dropped
  Impl::Sized& sized = impl_->at(sizes);
  // Blocks that grow for one take the others' programs: now all fit.
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < sized.runs.size(); ++i) {
      if (!impl_->plans.ways()[i].is_rare) impl_->run_of(sized, i);
    }
  }
}

std::vector<graph::RunTimeSize> Model::open_sizes() const {
  return graph::run_time_sizes(impl_->plans.graph());
}

const std::vector<std::string>& Model::entries() const noexcept { return impl_->plans.entries(); }

std::vector<Port> Model::inputs_of(std::string_view entry, const SizeValues& sizes) const {
  return impl_->ports_at(impl_->plans.entries()[impl_->entry(entry)], sizes).first;
}

std::vector<Port> Model::outputs_of(std::string_view entry, const SizeValues& sizes) const {
  return impl_->ports_at(impl_->plans.entries()[impl_->entry(entry)], sizes).second;
}

}  // namespace arenite
