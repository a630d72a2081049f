#include "src/model/sweeps.hpp"

#include "src/base/refuse.hpp"
#include "src/model/model_impl.hpp"
#include "src/model/ports.hpp"

#include <algorithm>
#include <limits>
#include <list>
#include <memory>
#include <numeric>
#include <utility>

namespace arenite {
namespace {

constexpr std::int64_t zero = 0;

std::string in_set(const std::string& set, const std::string& name) { return set + "/" + name; }

graph::Sweep sweep_of(const Swept& swept, bool on_devices) {
  graph::Sweep sweep{.samples = swept.samples.count(), .order = in_set(swept.name, "order")};
  for (const Column& column : swept.samples.columns) {
    sweep.inputs.push_back(
        {column.input, in_set(swept.name, column.input), column.type, column.scale});
  }
  if (on_devices) sweep.first = in_set(swept.name, "first");
  if (swept.rows) sweep.rows = in_set(swept.name, "rows");
  return sweep;
}

void bind(runtime::ProgramSpec& spec, const Swept& swept) {
  for (const Column& column : swept.samples.columns)
    spec.constants[in_set(swept.name, column.input)] = {column.data, column.bytes()};
  spec.constants[in_set(swept.name, "order")] = {
      swept.order.data(), static_cast<std::int64_t>(swept.order.size() * sizeof(std::int32_t))};
  spec.constants[in_set(swept.name, "first")] = {&zero, sizeof zero};
}

/// Of all inputs that an entry reads, and no others.
void check_columns(const std::vector<Port>& inputs, const Samples& samples) {
  check(samples);
  for (const Port& input : inputs) {
    const auto column = std::ranges::find(samples.columns, input.name, &Column::input);
    if (column == samples.columns.end())
      refuse("samples without a column '" + input.name + "'", "one for each input");
    if (column->shape.with(0, 1) == input.shape.with(0, 1)) continue;
    const auto shape_of_one = [](const Shape& all) { return Shape(all.dims().subspan(1)); };
    refuse("samples " + to_string(shape_of_one(column->shape)) + " of column '" + input.name + "'",
           to_string(shape_of_one(input.shape)) + ", as the input has");
  }
}

}  // namespace

Model Sweeps::opened(runtime::Session& session, graph::Graph graph, ModelPlans::GraphAt at,
                     const ModelOptions& options, std::string batch, const Wanted& like) {
  auto impl = std::make_unique<Model::Impl>(
      ModelPlans(std::move(graph), options.name, options_of(session, options), std::move(at)),
      options);
  impl->batch_size = std::move(batch);
  Model model(std::move(impl));
  Sweeps sweeps(model);
  Swept swept = sweeps.begun(like, like.entry);
  // Nobody knows yet whether a GPU can hold them.
  const bool on_devices = sweeps.impl_.draws_on_devices(std::numeric_limits<std::int64_t>::max());
  sweeps.impl_.preview_sweep = sweeps.program_of(swept, swept.batch, on_devices);
  sweeps.impl_.preview = sweeps.impl_.plans.sweeping_alone(sweeps.impl_.preview_sweep);
  return model;
}

Sweeps::Sweeps(Model& model) : impl_(*model.impl_) {}

/// Of an entry over samples, before there is any program.
Swept Sweeps::begun(const Wanted& wanted, std::string name) const {
  Swept swept{.name = std::move(name),
              .entry = wanted.entry,
              .samples = wanted.samples,
              .staged = wanted.staged,
              .rows = wanted.rows};
  const std::int64_t count = wanted.samples.count();
  swept.batch = std::min(impl_.plans.bounds().at(impl_.batch_size), count);
  swept.order.resize(static_cast<std::size_t>(count));
  std::iota(swept.order.begin(), swept.order.end(), 0);
  return swept;
}

SweepProgram Sweeps::program_of(const Swept& swept, std::int64_t batch, bool on_devices) const {
  const bool whole = batch == impl_.plans.bounds().at(impl_.batch_size);
  return {.way = impl_.way(swept.entry),
          .sizes = whole ? graph::SizeValues{} : graph::SizeValues{{impl_.batch_size, batch}},
          .sweep = sweep_of(swept, on_devices),
          .name = swept.name + (batch == swept.batch ? "" : ".rest"),
          .entry = swept.entry};
}

void Sweeps::prepare(const std::vector<Wanted>& wanted) {
  std::list<Swept> made;
  for (const Wanted& one : wanted) {
    const auto is_it = [&](const Swept& swept) {
      return swept.entry == one.entry && swept.samples == one.samples;
    };
    if (find(one.entry, one.samples) != nullptr || std::ranges::any_of(made, is_it)) continue;
    check_columns(impl_.plans.is_own(one.entry)
                      ? impl_.ports_at(one.entry, {}).first
                      : ports_of(impl_.plans.graph(), graph::StorageClass::input),
                  one.samples);
    // The first of an entry has the plain name, later ones a number.
    std::string name = one.entry;
    const auto is_called = [&](const Swept& swept) { return swept.name == name; };
    for (int number = 2;
         std::ranges::any_of(impl_.sweeps, is_called) || std::ranges::any_of(made, is_called);
         ++number)
      name = one.entry + "." + std::to_string(number);
    made.push_back(begun(one, name));
  }
  if (!made.empty()) build(made);
}

/// All of them, or none.
void Sweeps::build(std::list<Swept>& made) {
  std::int64_t bytes = 0;
  for (const std::list<Swept>* all : {&std::as_const(impl_.sweeps), &std::as_const(made)}) {
    for (const Swept& swept : *all) bytes += swept.staged ? 0 : swept.samples.bytes();
  }
  const bool on_devices = impl_.draws_on_devices(bytes);
  const ModelPlans::Places before = impl_.plans.places();
  try {
    std::vector<runtime::ProgramSpec> specs;
    bool fit = impl_.set != nullptr;
    for (Swept& swept : made) {
      const auto add = [&](std::int64_t batch) {
        compile::Compiled built =
            impl_.plans.sweeping(program_of(swept, batch, on_devices && !swept.staged));
        bind(built.spec, swept);
        if (batch == swept.batch) {
          swept.cut = built.cut;
          swept.at_once = built.at_once;
          swept.undivided = std::move(built.report.undivided);
          swept.position = std::move(built.position);
        }
        fit = fit && impl_.plans.fits(built.spec);
        specs.push_back(std::move(built.spec));
      };
      add(swept.batch);
      if (const std::int64_t rest = swept.samples.count() % swept.batch; rest > 0) add(rest);
    }
    impl_.add_programs(std::move(specs), fit);
  } catch (...) {
    impl_.plans.set_places(before);
    throw;
  }
  for (Swept& swept : made) {
    swept.whole = &(*impl_.set)[swept.name];
    if (impl_.set->has(swept.name + ".rest")) swept.rest = &(*impl_.set)[swept.name + ".rest"];
  }
  impl_.sweeps.splice(impl_.sweeps.end(), made);
}

Swept* Sweeps::find(std::string_view entry, const Samples& samples) noexcept {
  const auto found = std::ranges::find_if(impl_.sweeps, [&](const Swept& swept) {
    return swept.entry == entry && swept.samples == samples;
  });
  return found == impl_.sweeps.end() ? nullptr : &*found;
}

const Swept* Sweeps::first(std::string_view entry) const noexcept {
  const auto found = std::ranges::find_if(impl_.sweeps, [&](const Swept& swept) {
    return swept.entry == entry && swept.batch == impl_.plans.bounds().at(impl_.batch_size);
  });
  return found == impl_.sweeps.end() ? nullptr : &*found;
}

bool Sweeps::has(const Samples& samples) const noexcept {
  return std::ranges::find(impl_.sweeps, samples, &Swept::samples) != impl_.sweeps.end();
}

void Sweeps::release(const Samples& samples) {
  const auto end = [&](const Swept& swept, runtime::Program*& program) {
    if (program == nullptr) return;
    const runtime::ProgramSpec spec = program->spec();
    impl_.set->remove(spec.name);
    program = nullptr;
    for (const plan::Placement& place : spec.plan.placements) {
      const bool is_own = place.cls == graph::StorageClass::constant
                              ? place.name.starts_with(in_set(swept.name, ""))
                              : place.name == in_set(swept.name, "rows");
      if (is_own && !place.external)
        impl_.plans.release(place, spec.plan.blocks[place.block].space);
    }
  };
  std::erase_if(impl_.sweeps, [&](Swept& swept) {
    if (swept.samples != samples) return false;
    end(swept, swept.rest);
    end(swept, swept.whole);
    return true;
  });
}

std::span<const std::byte> Sweeps::rows_of(const Swept& swept) {
  return impl_.set->state<std::byte>(graph::StorageClass::buffer, in_set(swept.name, "rows"));
}

const compile::Compiled& Sweeps::preview() const noexcept { return *impl_.preview; }

compile::Report Sweeps::report(const Swept* swept) const {
  if (swept == nullptr) return impl_.plans.sweeping_alone(impl_.preview_sweep, true).report;
  const bool on_devices(swept->whole->spec().graph.find(in_set(swept->name, "first")));
  return impl_.plans.sweeping_alone(program_of(*swept, swept->batch, on_devices), true).report;
}

runtime::ProgramSet* Sweeps::set() const noexcept { return impl_.set.get(); }

bool Sweeps::has_state(graph::StorageClass cls, std::string_view name) const noexcept {
  return impl_.keeps(cls, name);
}

}  // namespace arenite
