#include "src/plan/text.hpp"

#include <array>
#include <charconv>

namespace arenite::plan {

std::string digits(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string decimal(double number, int places) {
  // 309 digits before the point at most; only sizes and coordinates come here.
  std::array<char, 350> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number,
                                    std::chars_format::fixed, places);
  return {text.data(), result.ptr};
}

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

std::string quoted(const Buffer& buffer) {
  std::string text = "'" + buffer.name + "' (" + digits(buffer.bytes) + " bytes";
  if (buffer.lifetime != Lifetime{}) text += ", lifetime " + lifetime_text(buffer.lifetime);
  return text + ")";
}

}  // namespace arenite::plan
