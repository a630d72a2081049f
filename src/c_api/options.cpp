#include "src/c_api/options.hpp"
#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace arenite::c_api {
namespace {

std::optional<int> number_of(std::string_view text) {
  constexpr int most = 64;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 1 && number <= most ? std::optional(number) : std::nullopt;
}

template <int ModelOptions::*member>
bool take_number(ModelOptions& options, std::string_view value) {
  if (value == "auto") options.*member = 0;
  const auto number = number_of(value);
  if (number) options.*member = *number;
  return number || value == "auto";
}

bool take_kept(ModelOptions& options, std::string_view value) {
  const auto number = number_of(value);
  if (number) options.sizes_kept = *number;
  return number.has_value();
}

bool take_device(ModelOptions& options, std::string_view value) {
  options.device = value;
  return true;  // whether the session has it is seen when a model is compiled
}

bool take_cudnn(ModelOptions& options, std::string_view value) {
  const bool known = value == "on" || value == "off";
  if (known) options.cudnn = value == "on";
  return known;
}

bool take_compute(ModelOptions& options, std::string_view value) {
  using runtime::Compute;
  for (const Compute compute : {Compute::float32, Compute::bfloat16, Compute::tfloat32}) {
    if (runtime::to_string(compute) != value) continue;
    options.compute = compute;
    return true;
  }
  return false;
}

/// "rows=40"; whether there is such a size is seen when a model is compiled.
bool take_size(ModelOptions& options, std::string_view value) {
  const std::size_t at = value.find('=');
  if (at == 0 || at == std::string_view::npos) return false;
  const std::string_view digits = value.substr(at + 1);
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  options.sizes[std::string(value.substr(0, at))] = size;
  return true;
}

bool take_seed(ModelOptions& options, std::string_view value) {
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), options.seed);
  return error == std::errc() && end == value.data() + value.size();
}

struct Option {
  std::string_view name, values;
  bool (*take)(ModelOptions&, std::string_view value);
};

constexpr std::string_view numbers = "a whole number of 1 to 64, or auto";

constexpr std::array all{
    Option{"at-once", numbers, take_number<&ModelOptions::shards_at_once>},
    Option{"compute", "float32, bfloat16 or tfloat32", take_compute},
    Option{"cudnn", "on or off", take_cudnn},
    Option{"device", "a device of the session", take_device},
    Option{"lanes", numbers, take_number<&ModelOptions::lanes>},
    Option{"seed", "a whole number of 0 to 2^64 - 1", take_seed},
    Option{"shards", numbers, take_number<&ModelOptions::shards>},
    Option{"size", "a size and a whole number, as in rows=40", take_size},
    Option{"sizes-kept", "a whole number of 1 to 64", take_kept},
};

}  // namespace

void set_option(ModelOptions& options, std::string_view name, std::string_view value) {
  std::string names;
  Nearest nearest(name);
  for (const Option& option : all) {
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

}  // namespace arenite::c_api
