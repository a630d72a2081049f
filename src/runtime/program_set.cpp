#include <arenite/error.hpp>

#include "src/runtime/forked.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

namespace arenite::runtime {

namespace {

ProgramOptions settled(ProgramOptions options, const std::vector<ProgramSpec>& specs) {
  if (options.task_sets == 0) {
    options.task_sets = 2;
    for (const ProgramSpec& spec : specs)
      options.task_sets = std::max(options.task_sets, task_sets_of(spec.plan));
  }
  if (options.task_sets < 2) {
    fail({.found = std::to_string(options.task_sets) + " task sets",
          .expected = "at least 2: a task can be resubmitted only after it has ended"});
  }
  return options;
}

}  // namespace

int task_sets_of(const plan::StepPlan& plan) noexcept {
  const bool on_gpu = std::ranges::any_of(plan.blocks, [](const plan::BlockPlan& block) {
    return block.space.device == DeviceKind::cuda;
  });
  return on_gpu ? 3 : 2;
}

ProgramSet::ProgramSet(Session& session, const KernelTable& kernels, std::vector<ProgramSpec> specs,
                       const ProgramOptions& options)
    : impl_(std::make_unique<Impl>(kernels, settled(options, specs))) {
  refuse_forked();
  static_cast<void>(session);  // asked for so that nobody builds programs before starting StarPU
  std::vector<const plan::StepPlan*> plans;
  for (const ProgramSpec& spec : specs) {
    if (options.verify) plan::verify_step(spec.graph, spec.schedule, spec.plan);
    plans.push_back(&spec.plan);
  }
  if (options.verify) plan::verify_together(plans);
  impl_->warm_up_devices(specs);
  impl_->make_blocks(specs);
  impl_->check_memory(specs);
  for (Block& block : impl_->blocks) static_cast<void>(block.data());  // and so pinned, or not
  for (const ProgramSpec& spec : specs) {
    impl_->fill_constants(spec);
    impl_->check_pinned(spec);
  }
  for (ProgramSpec& spec : specs) impl_->make_program(std::move(spec));
  impl_->is_made = true;
  impl_->begin_state();
  if (const auto request = capture_request()) impl_->begin_capture(*request);
}

/// A child leaves it all where it is: others' locks may be held for ever there.
ProgramSet::~ProgramSet() {
  if (!is_forked()) return;
  static auto& left = *new std::vector<std::unique_ptr<Impl>>;
  left.push_back(std::move(impl_));
}

ProgramSet::Impl::~Impl() {
  for (const auto& program : programs) program->impl_->drain();
  capture.reset();
  programs.clear();  // waits for their tasks
}

void ProgramSet::Impl::make_blocks(const std::vector<ProgramSpec>& specs) {
  std::vector<std::int64_t> bytes;  // by group
  const auto add = [&](const plan::BlockPlan& block, const std::string& entry) {
    const std::string owner = block.per_task_set ? entry : "";
    auto it = std::find_if(groups.begin(), groups.end(), [&](const BlockGroup& g) {
      return g.name == block.name && g.space == block.space && g.owner == owner;
    });
    if (it == groups.end()) {
      it = groups.insert(groups.end(), {.name = block.name, .space = block.space, .owner = owner});
      it->copies = block.per_task_set ? static_cast<std::size_t>(options.task_sets) : 1;
      bytes.push_back(0);
    }
    std::int64_t& need = bytes[static_cast<std::size_t>(it - groups.begin())];
    need = std::max(need, block.bytes);
  };
  for (const ProgramSpec& spec : specs) {
    for (const plan::BlockPlan& block : spec.plan.blocks) add(block, entry_of(spec));
  }
  for (const BlockRoom& room : options.room) add(room.block, room.entry);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].first = blocks.size();
    for (std::size_t copy = 0; copy < groups[g].copies; ++copy) {
      const std::string name = groups[g].owner.empty() ? groups[g].name
                                                       : groups[g].owner + "/" + groups[g].name +
                                                             "." + std::to_string(copy);
      blocks.emplace_back(name, bytes[g], groups[g].space);
      if constexpr (checked_build) owners.emplace_back(bytes[g]);
    }
  }
}

/// Null: the set has none of this name.
const ProgramSet::Impl::BlockGroup* ProgramSet::Impl::find_group(
    const ProgramSpec& spec, const plan::BlockPlan& block) const {
  const auto found = std::ranges::find_if(groups, [&](const BlockGroup& g) {
    return g.name == block.name && g.space == block.space &&
           g.owner == (block.per_task_set ? entry_of(spec) : "");
  });
  return found == groups.end() ? nullptr : &*found;
}

std::size_t ProgramSet::Impl::group(const ProgramSpec& spec, const plan::Placement& place) const {
  const plan::BlockPlan& block = spec.plan.blocks.at(place.block);
  const BlockGroup* const found = find_group(spec, block);
  if (found == nullptr)
    fail({.found = "no block '" + block.name + "'", .expected = "a block of the plan"});
  return static_cast<std::size_t>(found - groups.data());
}

std::size_t ProgramSet::Impl::block_index(const ProgramSpec& spec, const plan::Placement& place,
                                          std::size_t set) const {
  const BlockGroup& g = groups[group(spec, place)];
  return g.first + (g.copies == 1 ? 0 : set);
}

Program& ProgramSet::Impl::make_program(ProgramSpec spec) {
  auto impl = std::make_unique<Program::Impl>(*this, std::move(spec));
  impl->build();
  programs.push_back(std::unique_ptr<Program>(new Program(std::move(impl))));
  return *programs.back();
}

void ProgramSet::Impl::activate(Program::Impl& next) {
  if (active == &next) return;
  if (active) {
    active->drain();
    active->report();
  }
  active = &next;
}

Program& ProgramSet::operator[](std::string_view name) {
  std::string known;
  for (const auto& program : impl_->programs) {
    if (program->name() == name) return *program;
    known += (known.empty() ? "" : ", ") + program->name();
  }
  fail({.found = "no program '" + std::string(name) + "'", .expected = "one of " + known});
}

bool ProgramSet::has(std::string_view name) const noexcept {
  return std::any_of(impl_->programs.begin(), impl_->programs.end(),
                     [&](const auto& program) { return program->name() == name; });
}

namespace {

constexpr std::array persistent_classes{graph::StorageClass::parameter,
                                        graph::StorageClass::optimizer_state,
                                        graph::StorageClass::buffer};

/// A place that outlives a step; null: this program has none of that class and name.
const plan::Placement* find_state(const ProgramSpec& spec, graph::StorageClass cls,
                                  std::string_view name) {
  const auto& places = spec.plan.placements;
  const auto found = std::ranges::find_if(
      places, [&](const plan::Placement& place) { return place.cls == cls && place.name == name; });
  return found == places.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_state(std::string_view name) {
  fail({.found = "no persistent value '" + std::string(name) + "'",
        .expected = "a parameter, optimizer state or buffer"});
}

}  // namespace

/// Of values of a name, whichever program declares it first says how it begins.
void ProgramSet::Impl::begin_state() {
  std::map<std::pair<graph::StorageClass, std::string_view>, const graph::Value*> known;
  for (const auto& program : programs) {
    const graph::Graph& graph = program->spec().graph;
    for (const graph::StorageClass cls : persistent_classes) {
      auto stream = static_cast<std::uint32_t>(cls) << 28;
      for (const graph::ValueId id : graph.declared(cls)) {
        const graph::Value& value = graph[id];
        const auto [first, is_new] =
            known.emplace(std::pair(cls, std::string_view(value.name)), &value);
        if (first->second->first != value.first) {
          fail({.found = "'" + value.name + "' that begins with " + to_string(value.first),
                .expected = to_string(first->second->first) + ", as in another program",
                .where = "program '" + program->name() + "'"});
        }
        if (is_new && !value.first.is_zero()) {
          graph::fill(state(cls, value.name, 1), value.type, value.first, options.seed, stream);
        }
        ++stream;
      }
    }
  }
}

graph::StorageClass ProgramSet::class_of(std::string_view name) const {
  for (const auto& program : impl_->programs) {
    for (const graph::StorageClass cls : persistent_classes) {
      if (find_state(program->spec(), cls, name) != nullptr) return cls;
    }
  }
  refuse_state(name);
}

std::span<std::byte> ProgramSet::state_bytes(graph::StorageClass cls, std::string_view name,
                                             std::size_t element_bytes) {
  return impl_->state(cls, name, element_bytes);
}

std::span<std::byte> ProgramSet::Impl::state(graph::StorageClass cls, std::string_view name,
                                             std::size_t element_bytes) {
  if (active) active->drain();
  for (const auto& program : programs) {
    const ProgramSpec& spec = program->spec();
    const plan::Placement* place = find_state(spec, cls, name);
    if (place == nullptr) continue;
    if (place->bytes % static_cast<std::int64_t>(element_bytes) != 0) {
      fail({.found = "'" + place->name + "' of " + std::to_string(place->bytes) + " bytes",
            .expected = "a multiple of " + std::to_string(element_bytes)});
    }
    Block& block = blocks[block_index(spec, *place, 0)];
    if (block.space().device != DeviceKind::cpu) return lend(*place, block);
    return {block.data() + place->offset, static_cast<std::size_t>(place->bytes)};
  }
  refuse_state(name);
}

const std::vector<Block>& ProgramSet::blocks() const noexcept { return impl_->blocks; }

void ProgramSet::Impl::check_fits(const ProgramSpec& spec) const {
  for (const plan::BlockPlan& block : spec.plan.blocks) {
    const BlockGroup* const found = find_group(spec, block);
    const std::int64_t bytes = found == nullptr ? 0 : blocks[found->first].bytes();
    if (block.bytes <= bytes) continue;
    fail({.found = std::to_string(block.bytes) + " bytes of block '" + block.name + "'",
          .expected = "at most the " + std::to_string(bytes) + " that it has",
          .where = "program '" + spec.name + "'"});
  }
}

Program& ProgramSet::add(ProgramSpec spec) {
  refuse_forked();
  if (has(spec.name)) fail({.found = "a second program '" + spec.name + "'", .expected = "one"});
  if (impl_->options.verify) {
    plan::verify_step(spec.graph, spec.schedule, spec.plan);
    std::vector<const plan::StepPlan*> plans{&spec.plan};
    for (const auto& program : impl_->programs) plans.push_back(&program->spec().plan);
    plan::verify_together(plans);
  }
  impl_->check_fits(spec);
  impl_->check_memory({&spec, 1});
  if (impl_->active) impl_->active->drain();
  impl_->fill_constants(spec);
  impl_->check_pinned(spec);
  impl_->lend_state(spec);  // for tasks of devices are tried out
  return impl_->make_program(std::move(spec));
}

void ProgramSet::remove(std::string_view name) {
  (*this)[name].wait();
  auto& all = impl_->programs;
  const auto place =
      std::ranges::find_if(all, [&](const auto& one) { return one->name() == name; });
  const std::unique_ptr<Program> removed = std::move(*place);
  all.erase(place);
  impl_->forget_copies(removed->spec());
}

}  // namespace arenite::runtime
