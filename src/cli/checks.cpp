#include "src/cli/checks.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace arenite::cli {
namespace {

template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

CLI::Validator expecting(const std::string& what, std::function<bool(const std::string&)> right) {
  return {[what, right = std::move(right)](std::string& text) {
            return right(text) ? std::string() : fmt::format("'{}'; expected {}", text, what);
          },
          what};
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  constexpr std::uint64_t unlimited = std::numeric_limits<std::int64_t>::max();
  std::string what = fmt::format("a whole number of {} to {}", least, most);
  if (most == unlimited) what = fmt::format("a whole number of at least {}", least);
  if (most > unlimited) what = fmt::format("a whole number of {} to 2^64 - 1", least);
  return expecting(what, [least, most](const std::string& text) {
    const auto value = parse<std::uint64_t>(text);
    return value && *value >= least && *value <= most;
  });
}

CLI::Validator number_of_at_least_0() {
  return expecting("a finite number of at least 0", [](const std::string& text) {
    const auto value = parse<float>(text);
    return value && std::isfinite(*value) && *value >= 0;
  });
}

CLI::Validator number_from_0_to_below_1() {
  return expecting("a number from 0 to below 1", [](const std::string& text) {
    const auto value = parse<float>(text);
    return value && *value >= 0 && *value < 1;
  });
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string what = fmt::format("one of {}", fmt::join(names, ", "));
  return expecting(what, [names = std::move(names)](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  });
}

CLI::Validator not_empty() {
  return expecting("a path", [](const std::string& text) { return !text.empty(); });
}

}  // namespace arenite::cli
