// Plans as JSON files, for diffs, other tools, and loading again without planning.
//
//   {"format": "arenite plan 1", "peak": 12288, "max_live": 12288, "lower_bound": 12288,
//    "optimal": true, "strategy": "first_fit_by_size", "milliseconds": 0.012,
//    "spaces": [{"space": "cpu:0/host", "capacity": 65536, "peak": 12288, …,
//                "forward_bytes": 12288}],
//    "buffers": [{"name": "x", "bytes": 4096, "offset": 0, "begin": 0, "end": 3,
//                 "alignment": 256, "space": "cpu:0/host", "phase": "forward", "label": ""}, …],
//    "reuse": [[previous, next], …]}
//
// A space's bytes by phase are those of phase_bytes(); reading ignores them. A space without a
// limit has no "capacity"; a buffer whose offset was given by the problem has "fixed": true.
// Optional when reading: format, reuse, capacity, proof, fixed, and a buffer's alignment (256),
// space ("cpu:0/host"), phase (forward) and label. Unknown fields are ignored.
//
// Safe from any thread. Reading proves the form only: verify() says whether a plan is sound.
#pragma once

#include <arenite/plan/plan.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace arenite::plan {

/// Files and texts above this many bytes are refused, which bounds the memory that reading takes.
inline constexpr std::size_t max_json_bytes = std::size_t{64} << 20;

/// One line for each space and buffer. Throws Error when a name or label is not UTF-8.
/// With a shortfall it says besides: "verdict", "capacity", "bytes_needed" and "buffers_at_peak".
/// `more` are further fields, as in `"tasks": 12, "lanes": 4`; reading ignores them.
std::string to_json(const Plan& plan, const std::optional<Shortfall>& shortfall = {},
                    std::string_view more = {});

/// Throws Error with the byte offset (malformed text) or the path of the field (wrong contents),
/// what was found and what was expected; `where` names the text in these messages.
Plan from_json(std::string_view text, std::string_view where = "plan JSON");

/// Writes to a temporary name beside `file`, then renames: readers see all of it or nothing.
/// Throws Error when that fails.
void write_json(const Plan& plan, const std::filesystem::path& file);

/// Throws Error when the file cannot be read, is too large or holds no plan.
Plan read_json(const std::filesystem::path& file);

}  // namespace arenite::plan
