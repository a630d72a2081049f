#include <arenite/error.hpp>
#include <arenite/operators.hpp>
#include <arenite/random.hpp>

#include "src/train/programs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace arenite::train {
namespace {

bool same(const data::Split& a, const data::Split& b) {
  return a.images.data() == b.images.data() && a.labels.data() == b.labels.data() &&
         a.count == b.count;
}

constexpr std::int64_t zero = 0;

void bind_constants(runtime::ProgramSpec& spec, const std::string& set, const Pass& pass) {
  const auto bytes = [](const auto& span) {
    return static_cast<std::int64_t>(span.size() * sizeof(span[0]));
  };
  spec.constants = {
      {name_in(set, names::images), {pass.split.images.data(), bytes(pass.split.images)}},
      {name_in(set, names::labels), {pass.split.labels.data(), bytes(pass.split.labels)}},
      {name_in(set, names::order), {pass.order.data(), bytes(pass.order)}},
      {name_in(set, names::first), {&zero, sizeof zero}}};
}

/// Whether lanes on GPUs are to gather their samples there: where all sets leave most of each
/// GPU's memory to others, unless somebody has said.
bool keeps_data_there(const Recipe& recipe, const std::vector<std::unique_ptr<Pass>>& passes) {
  if (recipe.options.resident_data) return *recipe.options.resident_data;
  std::size_t bytes = 0;
  for (const auto& pass : passes) bytes += pass->split.images.size() + pass->split.labels.size();
  return std::ranges::all_of(recipe.spaces, [&](const Space& space) {
    return space.device == DeviceKind::cpu ||
           bytes <= static_cast<std::uint64_t>(space.capacity) / 4;
  });
}

template <class F>
void for_each_persistent(const std::vector<std::unique_ptr<Pass>>& passes, F f) {
  for (const auto& pass : passes) {
    for (const runtime::Program* program : {pass->whole, pass->rest}) {
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
  if (training && split.count < batch) {
    fail({.found = "a batch of " + std::to_string(batch) + " from " + std::to_string(split.count) +
                   " training images",
          .expected = "a batch no larger than the set",
          .hint = "use a smaller --batch or a larger --limit"});
  }
}

StepRequest Recipe::request(std::string name, std::int64_t batch, std::int64_t dataset,
                            bool training) const {
  return {.name = std::move(name),
          .batch = batch,
          .dataset = dataset,
          .image = image,
          .training = training,
          .how = {.spaces = spaces,
                  .lanes = options.lanes,
                  .fuse = options.fuse,
                  .kernels = {.compute = options.compute, .choices = options.kernels},
                  .target = options.target,
                  .plan = {.layout = options.layout, .solve = {}}}};
}

Programs::Programs(runtime::Session& session, const Recipe& recipe,
                   const std::vector<nn::Parameter>& parameters, plan::StateLayout state,
                   const std::vector<Wanted>& wanted)
    : state_(std::move(state)) {
  for (const auto& [split, training] : wanted) {
    auto& pass = *passes_.emplace_back(std::make_unique<Pass>());
    pass.split = split;
    pass.training = training;
    pass.batch = std::min(recipe.options.batch, split.count);
    pass.order.resize(static_cast<std::size_t>(split.count));
    std::iota(pass.order.begin(), pass.order.end(), 0);
  }
  build(session, recipe);
  initialise(recipe.options.init, parameters);
}

void Programs::build(runtime::Session& session, const Recipe& recipe) {
  struct Wish {
    runtime::Program** program;
    std::string name;
  };
  std::vector<Wish> wishes;
  std::vector<runtime::ProgramSpec> specs;
  int trained = 0, evaluated = 0;
  const bool resident = keeps_data_there(recipe, passes_);
  for (const auto& pass : passes_) {
    // The first of a kind has the plain name, later splits a number.
    const int number = ++(pass->training ? trained : evaluated);
    const std::string stem = std::string(pass->training ? "train" : "evaluate") +
                             (number == 1 ? "" : "." + std::to_string(number));
    const auto add = [&](runtime::Program*& program, const std::string& name, std::int64_t batch) {
      StepRequest request = recipe.request(name, batch, pass->split.count, pass->training);
      request.resident = resident;
      request.set = stem;
      StepProgram built =
          build_step(recipe.model, recipe.options.loss, recipe.options.optimizer, request, &state_);
      bind_constants(built.spec, stem, *pass);
      specs.push_back(std::move(built.spec));
      wishes.push_back({&program, name});
    };
    add(pass->whole, stem, pass->batch);
    if (const std::int64_t rest = pass->split.count % pass->batch; rest > 0)
      add(pass->rest, stem + ".rest", rest);
  }
  // Every program was given its state block before later ones added to it.
  for (auto& spec : specs) {
    for (auto& block : spec.plan.blocks) {
      if (block.persistent) block.bytes = state_.bytes(block.space);
    }
  }
  set_ = std::make_unique<runtime::ProgramSet>(
      session, kernels(), std::move(specs),
      runtime::ProgramOptions{.record = recipe.options.cuda_graphs});
  for (const Wish& wish : wishes) *wish.program = &(*set_)[wish.name];
}

void Programs::initialise(const Initializer& how, const std::vector<nn::Parameter>& parameters) {
  std::uint32_t stream = 0;
  for (const nn::Parameter& parameter : parameters) {
    const float range = how.range.value_or(
        static_cast<float>(parameter.gain / std::sqrt(static_cast<double>(parameter.fan_in))));
    const Philox random(how.seed, Purpose::initialise, stream++);
    auto values = set_->state<float>(parameter.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i, -range, range);
  }
}

Programs::State Programs::save() {
  State state;
  for_each_persistent(passes_, [&](const plan::Placement& place) {
    const auto [entry, is_new] = state.try_emplace(place.name);
    if (!is_new) return;
    const std::span<const std::byte> bytes = set_->state<std::byte>(place.name);
    entry->second.assign(bytes.begin(), bytes.end());
  });
  return state;
}

void Programs::restore(const State& state) {
  // An evaluation alone has no optimizer state.
  for (const auto& [name, bytes] : state) {
    if (has_state(name)) std::ranges::copy(bytes, set_->state<std::byte>(name).begin());
  }
}

Pass* Programs::find(const data::Split& split, bool training) noexcept {
  for (const auto& pass : passes_) {
    if (pass->training == training && same(pass->split, split)) return pass.get();
  }
  return nullptr;
}

bool Programs::has(const std::vector<Wanted>& list, const data::Split& split, bool training) {
  return std::ranges::any_of(
      list, [&](const Wanted& one) { return one.second == training && same(one.first, split); });
}

bool Programs::has_state(std::string_view name) const noexcept {
  bool found = false;
  for_each_persistent(passes_,
                      [&](const plan::Placement& place) { found = found || place.name == name; });
  return found;
}

}  // namespace arenite::train
