// Enumerators and what they are called.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace arenite {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

template <class Enum, std::size_t N>
constexpr std::string_view name_of(Enum value, const Names<Enum, N>& names) noexcept {
  const auto known = std::ranges::find(names, value, &std::pair<Enum, std::string_view>::first);
  return known == names.end() ? "?" : known->second;
}

/// Who is called so, if anybody is.
template <class Enum, std::size_t N>
constexpr std::optional<Enum> find_name(std::string_view text, const Names<Enum, N>& names) {
  const auto known = std::ranges::find(names, text, &std::pair<Enum, std::string_view>::second);
  return known == names.end() ? std::nullopt : std::optional(known->first);
}

}  // namespace arenite
