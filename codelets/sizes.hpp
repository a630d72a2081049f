// Small arithmetic on sizes that kernels share.
#pragma once

#include <cstdint>
#include <vector>

namespace arenite::codelets {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}

struct Part {
  std::int64_t first, count;
};

/// 0 … total−1 in as few parts of at most `most` as possible, nearly equal ones.
inline std::vector<Part> split(std::int64_t total, std::int64_t most) {
  const std::int64_t count = divide_up(total, most);
  std::vector<Part> parts;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t first = p * total / count;
    parts.push_back({first, (p + 1) * total / count - first});
  }
  return parts;
}

/// Whether a copy of one sample is in proportion to the sample; both in floats. With wild paddings
/// and dilations kilobytes of operands would take gigabytes of scratch: those are left to kernels
/// that copy nothing. (In floating point: what is too large might not fit an integer.)
constexpr bool in_proportion(double copied, double sample) noexcept {
  return copied <= 16 * sample + (1 << 20);
}

}  // namespace arenite::codelets
