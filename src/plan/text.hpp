// Words for messages and pictures.
#pragma once

#include <arenite/plan/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/words.hpp"

namespace arenite::plan {

/// Never with a comma, whatever the process's locale; JSON and SVG need that.
std::string decimal(double number, int places);
std::string bytes_text(std::int64_t bytes);       ///< "512 B", "12.5 KiB", "3.00 MiB"
std::string lifetime_text(Lifetime lifetime);     ///< "[0, 3)"
std::string lifetime_text(const Buffer& buffer);  ///< "[0, 9) without [2, 3), [5, 7)"
std::string quoted(const Buffer& buffer);         ///< "'x' (4,096 bytes, lifetime [0, 3))"

/// The inverse of to_string(Space), without the capacity; none where the text is no space.
std::optional<Space> parse_space(std::string_view text);
inline constexpr std::string_view a_space = "a space such as 'cpu:0/host' or 'cuda:1/device'";

/// The strategies of the spaces, each once, joined by '+'.
std::string strategies_text(const std::vector<SpacePlan>& spaces);

}  // namespace arenite::plan
