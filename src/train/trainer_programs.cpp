#include <arenite/error.hpp>
#include <arenite/operators.hpp>

#include "src/train/trainer_programs.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace arenite::train {
namespace {

bool same(const data::Split& a, const data::Split& b) {
  return a.images.data() == b.images.data() && a.labels.data() == b.labels.data() &&
         a.count == b.count;
}

constexpr std::int64_t zero = 0;

void bind_constants(runtime::ProgramSpec& spec, const SplitPrograms& of) {
  const auto bytes = [](const auto& span) {
    return static_cast<std::int64_t>(span.size() * sizeof(span[0]));
  };
  spec.constants = {
      {name_in(of.name, names::images), {of.split.images.data(), bytes(of.split.images)}},
      {name_in(of.name, names::labels), {of.split.labels.data(), bytes(of.split.labels)}},
      {name_in(of.name, names::order), {of.order.data(), bytes(of.order)}},
      {name_in(of.name, names::first), {&zero, sizeof zero}}};
}

/// Whether lanes on GPUs are to gather their samples there: where the sets leave most of each GPU's
/// memory to others, unless somebody has said.
bool keeps_data_there(const TrainerSetup& setup, std::size_t bytes) {
  if (setup.options.resident_data) return *setup.options.resident_data;
  return std::ranges::all_of(setup.spaces, [&](const Space& space) {
    return space.device == DeviceKind::cpu ||
           bytes <= static_cast<std::uint64_t>(space.capacity) / 4;
  });
}

template <class F>
void for_each_persistent(const std::vector<std::unique_ptr<SplitPrograms>>& splits, F f) {
  for (const auto& programs : splits) {
    for (const runtime::Program* program : {programs->whole, programs->rest}) {
      if (!program) continue;
      for (const plan::Placement& place : program->spec().plan.placements) {
        if (graph::is_persistent(place.cls)) f(place);
      }
    }
  }
}

}  // namespace

void check_split(const data::Split& split, bool training, const Shape& image, std::int64_t batch) {
  const std::string kind = training ? "training" : "test";
  if (split.shape() != image) {
    fail({.found = kind + " images of shape " + to_string(split.shape()),
          .expected = to_string(image) + ", as the model was built for"});
  }
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (split.count < 1 || split.count > most) {
    fail({.found = std::to_string(split.count) + " " + kind + " images",
          .expected = "1 to " + std::to_string(most)});
  }
  const auto count = static_cast<std::size_t>(split.count);
  const auto one = static_cast<std::size_t>(image.elements());
  if (split.images.size() / one != count || split.images.size() % one != 0) {
    fail({.found = std::to_string(split.images.size()) + " bytes of " + kind + " images",
          .expected = std::to_string(count) + " images of " + std::to_string(one) + " bytes"});
  }
  if (split.labels.size() != count) {
    fail({.found = std::to_string(split.labels.size()) + " " + kind + " labels",
          .expected = std::to_string(count) + ", one an image"});
  }
  const auto wrong = std::ranges::find_if(split.labels, [&](std::uint8_t label) {
    return split.classes > 0 && label >= split.classes;
  });
  if (wrong != split.labels.end()) {
    fail({.found = "label " + std::to_string(*wrong) + " of " + kind + " image " +
                   std::to_string(wrong - split.labels.begin()),
          .expected = "0 to " + std::to_string(split.classes - 1) + ", one of " +
                      std::to_string(split.classes) + " classes"});
  }
  if (training && split.count < batch) {
    fail({.found = "a batch of " + std::to_string(batch) + " from " + std::to_string(split.count) +
                   " training images",
          .expected = "a batch no larger than the set",
          .hint = "use a smaller --batch or a larger --limit"});
  }
}

StepRequest TrainerSetup::request(const std::string& set, std::int64_t batch, std::int64_t dataset,
                                  bool training, std::size_t bytes) const {
  return {.name = set,
          .batch = batch,
          .dataset = dataset,
          .image = image,
          .resident = keeps_data_there(*this, bytes),
          .set = set,
          .training = training,
          .init_range = options.init.range,
          .how = {.spaces = spaces,
                  .shards = options.shards,
                  .lanes = options.lanes,
                  .at_once = options.shards_at_once,
                  .workers = workers,
                  .fuse = options.fuse,
                  .kernels = {.compute = options.compute, .choices = options.kernels},
                  .target = options.target,
                  .plan = {.layout = options.layout, .solve = {}}}};
}

TrainerPrograms::TrainerPrograms(runtime::Session& session, const TrainerSetup& setup,
                                 plan::StateLayout state, const std::vector<Wanted>& wanted)
    : state_(std::move(state)) {
  int trained = 0, evaluated = 0;
  for (const auto& [split, training] : wanted) {
    auto& programs = *splits_.emplace_back(std::make_unique<SplitPrograms>());
    // The first of a kind has the plain name, later splits a number.
    const int number = ++(training ? trained : evaluated);
    programs.name = std::string(training ? "train" : "evaluate") +
                    (number == 1 ? "" : "." + std::to_string(number));
    programs.split = split;
    programs.training = training;
    programs.batch = std::min(setup.options.batch, split.count);
    programs.order.resize(static_cast<std::size_t>(split.count));
    std::iota(programs.order.begin(), programs.order.end(), 0);
  }
  build(session, setup);
}

StepRequest TrainerPrograms::request(const TrainerSetup& setup, const SplitPrograms& programs,
                                     std::int64_t batch) const {
  std::size_t bytes = 0;
  for (const auto& all : splits_) bytes += all->split.images.size() + all->split.labels.size();
  return setup.request(programs.name, batch, programs.split.count, programs.training, bytes);
}

const SplitPrograms* TrainerPrograms::training() const noexcept {
  const auto first =
      std::ranges::find_if(splits_, [](const auto& programs) { return programs->training; });
  return first == splits_.end() ? nullptr : first->get();
}

void TrainerPrograms::build(runtime::Session& session, const TrainerSetup& setup) {
  struct Wish {
    runtime::Program** program;
    std::string name;
  };
  std::vector<Wish> wishes;
  std::vector<runtime::ProgramSpec> specs;
  for (const auto& programs : splits_) {
    const auto add = [&](runtime::Program*& program, const char* part, std::int64_t batch) {
      StepRequest wanted = request(setup, *programs, batch);
      wanted.name += part;
      compile::Compiled built =
          compile_step(setup.model, setup.options.loss, setup.options.optimizer, wanted, &state_);
      bind_constants(built.spec, *programs);
      if (&program == &programs->whole) {
        programs->cut = built.cut;
        programs->at_once = built.at_once;
        programs->undivided = std::move(built.report.undivided);
        programs->position = std::move(built.position);
      }
      specs.push_back(std::move(built.spec));
      wishes.push_back({&program, wanted.name});
    };
    add(programs->whole, "", programs->batch);
    if (const std::int64_t rest = programs->split.count % programs->batch; rest > 0)
      add(programs->rest, ".rest", rest);
  }
  // Every program was given its state block before later ones added to it.
  for (auto& spec : specs) {
    for (auto& block : spec.plan.blocks) {
      if (block.persistent) block.bytes = state_.bytes(block.space);
    }
  }
  set_ = std::make_unique<runtime::ProgramSet>(
      session, kernels(), std::move(specs),
      runtime::ProgramOptions{.record = setup.options.cuda_graphs,
                              .seed = setup.options.init.seed});
  for (const Wish& wish : wishes) *wish.program = &(*set_)[wish.name];
}

TrainerPrograms::State TrainerPrograms::save() {
  State state;
  for_each_persistent(splits_, [&](const plan::Placement& place) {
    const auto [entry, is_new] = state.try_emplace({place.cls, place.name});
    if (!is_new) return;
    const std::span<const std::byte> bytes = set_->state<std::byte>(place.cls, place.name);
    entry->second.assign(bytes.begin(), bytes.end());
  });
  return state;
}

void TrainerPrograms::restore(State& state) {
  // An evaluation alone has no optimizer state, which waits for those that train.
  std::erase_if(state, [&](const auto& entry) {
    const auto& [cls, name] = entry.first;
    if (!has_state(cls, name)) return false;
    std::ranges::copy(entry.second, set_->state<std::byte>(cls, name).begin());
    return true;
  });
}

SplitPrograms* TrainerPrograms::find(const data::Split& split, bool training) noexcept {
  for (const auto& programs : splits_) {
    if (programs->training == training && same(programs->split, split)) return programs.get();
  }
  return nullptr;
}

bool TrainerPrograms::has(const std::vector<Wanted>& list, const data::Split& split,
                          bool training) {
  return std::ranges::any_of(
      list, [&](const Wanted& one) { return one.second == training && same(one.first, split); });
}

bool TrainerPrograms::has_state(graph::StorageClass cls, std::string_view name) const noexcept {
  bool found = false;
  for_each_persistent(splits_, [&](const plan::Placement& place) {
    found = found || (place.cls == cls && place.name == name);
  });
  return found;
}

}  // namespace arenite::train
