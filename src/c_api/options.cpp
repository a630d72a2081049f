#include "src/c_api/options.hpp"
#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/runtime/compute_names.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace arenite::c_api {
namespace {

template <class T>
bool take_number(std::string_view text, T least, T most, T& into) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good =
      error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
  if (good) into = number;
  return good;
}

bool take_switch(std::string_view value, bool& into) {
  const bool known = value == "on" || value == "off";
  if (known) into = value == "on";
  return known;
}

/// A number of shards or lanes, or auto.
bool take_parts(std::string_view value, int& into) {
  if (value == "auto") into = 0;
  return value == "auto" || take_number(value, 1, 64, into);
}

bool take_compute(std::string_view value, runtime::Compute& into) {
  const auto compute = runtime::compute_named(value);
  if (compute) into = *compute;
  return compute.has_value();
}

/// "rows=40"; whether there is such a size is seen when a model is compiled.
bool take_size(std::string_view value, graph::SizeValues& sizes) {
  const std::size_t at = value.find('=');
  if (at == 0 || at == std::string_view::npos) return false;
  std::int64_t size = 0;
  using Limits = std::numeric_limits<std::int64_t>;
  if (!take_number(value.substr(at + 1), Limits::min(), Limits::max(), size)) return false;
  sizes[std::string(value.substr(0, at))] = size;
  return true;
}

bool take_seed(std::string_view value, std::uint64_t& into) {
  return take_number<std::uint64_t>(value, 0, std::numeric_limits<std::uint64_t>::max(), into);
}

constexpr std::string_view parts = "a whole number of 1 to 64, or auto",
                           computes = runtime::compute_names,
                           seeds = "a whole number of 0 to 2^64 - 1", on_off = "on or off",
                           few = "a whole number of 1 to 64",
                           count = "a whole number of 0 to 1000000";
constexpr int most_count = 1000000;
constexpr std::int64_t most_batch = 1 << 20;

template <class T>
struct Option {
  std::string_view name, values;
  bool (*take)(T&, std::string_view value);
};

using Model = ModelOptions;
constexpr std::array of_models{
    Option<Model>{"at-once", parts,
                  [](Model& o, auto v) { return take_parts(v, o.shards_at_once); }},
    Option<Model>{"compute", computes, [](Model& o, auto v) { return take_compute(v, o.compute); }},
    Option<Model>{"cudnn", on_off, [](Model& o, auto v) { return take_switch(v, o.cudnn); }},
    // Whether the session has it is seen when a model is compiled.
    Option<Model>{"device", "a device of the session",
                  [](Model& o, auto v) {
                    o.device = v;
                    return true;
                  }},
    Option<Model>{"lanes", parts, [](Model& o, auto v) { return take_parts(v, o.lanes); }},
    Option<Model>{"seed", seeds, [](Model& o, auto v) { return take_seed(v, o.seed); }},
    Option<Model>{"shards", parts, [](Model& o, auto v) { return take_parts(v, o.shards); }},
    Option<Model>{"size", "a size and a whole number, as in rows=40",
                  [](Model& o, auto v) { return take_size(v, o.sizes); }},
    Option<Model>{"sizes-kept", few,
                  [](Model& o, auto v) { return take_number(v, 1, 64, o.sizes_kept); }},
};

using Training = TrainingOptions;
constexpr std::array of_training{
    Option<Training>{"accumulate", few,
                     [](Training& o, auto v) {
                       return take_number<std::int64_t>(v, 1, 64, o.of_trainer.accumulate);
                     }},
    Option<Training>{
        "at-once", parts,
        [](Training& o, auto v) { return take_parts(v, o.of_trainer.shards_at_once); }},
    Option<Training>{"batch", "a whole number of 1 to 1048576",
                     [](Training& o, auto v) {
                       const bool good =
                           take_number<std::int64_t>(v, 1, most_batch, o.of_trainer.batch);
                       o.has_batch = o.has_batch || good;
                       return good;
                     }},
    Option<Training>{"compute", computes,
                     [](Training& o, auto v) { return take_compute(v, o.of_trainer.compute); }},
    Option<Training>{
        "early-stop", count,
        [](Training& o, auto v) { return take_number(v, 0, most_count, o.of_fit.patience); }},
    Option<Training>{
        "epochs", count,
        [](Training& o, auto v) { return take_number(v, 0, most_count, o.of_fit.epochs); }},
    Option<Training>{"lanes", parts,
                     [](Training& o, auto v) { return take_parts(v, o.of_trainer.lanes); }},
    // Of first values and of the order alike, as the command's.
    Option<Training>{"seed", seeds,
                     [](Training& o, auto v) {
                       return take_seed(v, o.of_trainer.init.seed) && take_seed(v, o.of_fit.seed);
                     }},
    Option<Training>{"shards", parts,
                     [](Training& o, auto v) { return take_parts(v, o.of_trainer.shards); }},
    Option<Training>{"shuffle", on_off,
                     [](Training& o, auto v) { return take_switch(v, o.of_fit.shuffle); }},
};

template <class T, std::size_t N>
void set_one(const std::array<Option<T>, N>& all, T& options, std::string_view name,
             std::string_view value) {
  std::string names;
  Nearest nearest(name);
  for (const Option<T>& option : all) {
    if (option.name == name) {
      if (!option.take(options, value))
        refuse(std::string(name) + " '" + std::string(value) + "'", std::string(option.values));
      return;
    }
    nearest.consider(option.name);
    names += (names.empty() ? "" : ", ") + std::string(option.name);
  }
  refuse("the option '" + std::string(name) + "'", "one of " + names, "", nearest.hint());
}

}  // namespace

void set_option(ModelOptions& options, std::string_view name, std::string_view value) {
  set_one(of_models, options, name, value);
}

void set_option(TrainingOptions& options, std::string_view name, std::string_view value) {
  set_one(of_training, options, name, value);
}

}  // namespace arenite::c_api
