// What products multiply, by name.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace arenite::runtime {

inline constexpr std::array computes{Compute::float32, Compute::bfloat16, Compute::tfloat32};
inline constexpr std::string_view compute_names = "float32, bfloat16 or tfloat32";

/// None: nothing is called so.
inline std::optional<Compute> compute_named(std::string_view name) noexcept {
  const auto known =
      std::ranges::find_if(computes, [&](Compute compute) { return to_string(compute) == name; });
  return known == computes.end() ? std::nullopt : std::optional(*known);
}

}  // namespace arenite::runtime
