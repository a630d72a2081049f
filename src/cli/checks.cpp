#include "src/cli/checks.hpp"

#include "src/base/nearest.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace arenite::cli {
namespace {

/// Of a floating-point number `format` may say how it is written.
template <class T, class... Format>
std::optional<T> parse(std::string_view text, Format... format) {
  T value{};
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// None where it is too small for a float: 0 may mean something else.
std::optional<float> parse_float(const std::string& text) {
  const auto value = parse<double>(text);
  if (!value || (*value != 0 && static_cast<float>(*value) == 0)) return std::nullopt;
  return static_cast<float>(*value);
}

}  // namespace

std::optional<std::uint64_t> whole_number(const std::string& text, std::uint64_t least,
                                          std::uint64_t most) {
  const auto value = parse<std::uint64_t>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::string whole_number_text(std::uint64_t least, std::uint64_t most) {
  constexpr std::uint64_t unlimited = std::numeric_limits<std::int64_t>::max();
  if (most == unlimited) return fmt::format("a whole number of at least {}", least);
  if (most > unlimited) return fmt::format("a whole number of {} to 2^64 - 1", least);
  return fmt::format("a whole number of {} to {}", least, most);
}

std::optional<float> number_of_at_least_0(const std::string& text) {
  const auto value = parse_float(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::optional<double> real_of_at_least_0(const std::string& text) {
  const auto value = parse<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::optional<float> number_from_0_to_below_1(const std::string& text) {
  const auto value = parse_float(text);
  return value && *value >= 0 && *value < 1 ? value : std::nullopt;
}

double as_written(float number) { return std::stod(fmt::format("{}", number)); }

std::optional<std::int64_t> bytes_of(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr double kib = 1024, most = 1e15;
  for (const Unit& unit :
       {Unit{"KiB", kib}, {"MiB", kib * kib}, {"GiB", kib * kib * kib}, {"", 1}}) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view digits =
        std::string_view(text).substr(0, text.size() - unit.name.size());
    const auto number = parse<double>(digits, std::chars_format::fixed);
    if (!number) return std::nullopt;
    const double bytes = *number * unit.bytes;
    if (!(bytes >= 1 && bytes <= most)) return std::nullopt;
    return static_cast<std::int64_t>(bytes);
  }
  return std::nullopt;
}

std::optional<std::string> any_text(const std::string& text) { return text; }

Rule one_of(std::vector<std::string> names) {
  const std::string what = fmt::format("one of {}", fmt::join(names, ", "));
  return {what, [what, names = std::move(names)](const std::string& text) {
            if (std::ranges::find(names, text) != names.end()) return std::string();
            Nearest nearest(text);
            for (const std::string& name : names) nearest.consider(name);
            const std::string guess = nearest.hint();
            return fmt::format("'{}'{}; expected {}", text,
                               guess.empty() ? guess : fmt::format(" ({})", guess), what);
          }};
}

Rule a_path() {
  return {
      "a path", [](const std::string& text) {
        if (text == "-") {
          return std::string("'-'; expected a path: /dev/stdin, /dev/stdout, or ./- for a file");
        }
        return text.empty() ? std::string("''; expected a path") : std::string();
      }};
}

}  // namespace arenite::cli
