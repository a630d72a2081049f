// Pictures of a plan: time across, addresses up, one box a buffer.
//
// Pure functions of the plan but for draw(), which writes a file; safe from any thread.
#pragma once

#include <arenite/plan/plan.hpp>

#include <filesystem>
#include <string>

namespace arenite::plan {

/// A self-contained SVG picture, one panel a space. Colours tell phases (hue) and labels (shade);
/// hovering a box shows its name, bytes, lifetime and offset. A dark line is the sum of live bytes
/// over time, a dashed one the peak.
std::string to_svg(const Plan& plan);

/// Writes to_svg(plan) to a file, whole or not at all. Throws Error when that fails.
void draw(const Plan& plan, const std::filesystem::path& file);

/// The same as plain text of at most 100 columns, with a legend; boundaries are exact for small
/// plans and sampled for large ones, and a note says which.
std::string draw_text(const Plan& plan);

}  // namespace arenite::plan
