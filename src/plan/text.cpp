#include "src/plan/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace arenite::plan {

std::string decimal(double number, int places) { return fmt::format("{:.{}f}", number, places); }

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  // Four significant digits at most, so that columns of sizes stay narrow.
  const int places = unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return decimal(value, places) + " " + units[unit];
}

std::string lifetime_text(Lifetime lifetime) {
  return "[" + std::to_string(lifetime.begin) + ", " + std::to_string(lifetime.end) + ")";
}

std::string lifetime_text(const Buffer& buffer) {
  constexpr std::size_t shown = 4;
  std::string text = lifetime_text(buffer.lifetime);
  for (std::size_t i = 0; i < std::min(shown, buffer.gaps.size()); ++i) {
    text += (i == 0 ? " without " : ", ") + lifetime_text(buffer.gaps[i]);
  }
  if (buffer.gaps.size() > shown) text += ", …";
  return text;
}

std::string quoted(const Buffer& buffer) {
  std::string text = "'" + buffer.name + "' (" + digits(buffer.bytes) + " bytes";
  if (buffer.lifetime != Lifetime{}) text += ", lifetime " + lifetime_text(buffer);
  return text + ")";
}

std::optional<Space> parse_space(std::string_view text) {
  Space space;
  std::string_view rest = text;
  const auto take = [&](std::string_view prefix) {
    const bool match = rest.starts_with(prefix);
    if (match) rest.remove_prefix(prefix.size());
    return match;
  };
  if (!take("cpu:")) {
    if (!take("cuda:")) return std::nullopt;
    space.device = DeviceKind::cuda;
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), space.index);
  if (error != std::errc{} || space.index < 0) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (rest == "/device") space.memory = MemoryKind::device;
  if (rest != "/host" && rest != "/device") return std::nullopt;
  // One text for each: no +0, no 007.
  if (to_string(space) != text) return std::nullopt;
  return space;
}

std::string strategies_text(const std::vector<SpacePlan>& spaces) {
  std::string text;
  std::set<std::string_view> seen;
  for (const SpacePlan& space : spaces) {
    if (seen.insert(space.strategy).second) text += (text.empty() ? "" : "+") + space.strategy;
  }
  return text;
}

}  // namespace arenite::plan
