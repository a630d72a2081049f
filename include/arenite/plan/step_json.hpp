// Whole step plans as JSON files: planned once, diffed, and loaded again without planning.
//
//   {"format": "arenite step plan 1", "layout": "overlay", "lower_bound": 8192, "separate": 12288,
//    "optimal": true, "critical_path": 81.5, "critical_path_without": 80.25,
//    "blocks": [{"name": "step", "space": "cpu:0/host", "bytes": 8192, "per_task_set": false,
//                "persistent": false}, …],
//    "arenas": [{"phase": "forward", "block": "step", "peak": 8192, "separate": 12288}, …],
//    "placements": [{"storage": 3, "name": "h", "class": "activation", "block": 2, "offset": 0,
//                    "bytes": 4096, "phase": "forward", "saved": true}, …],
//    "reuse": [[before, after], …],
//    "packings": [a plan as in json.hpp for each transient block, …]}
//
// "block" counts from 0 in "blocks"; a constant has "external": true instead of block and offset. A
// space with a limit has its "capacity". Unknown fields are ignored.
//
// Safe from any thread. Reading proves the form only: verify_step() says whether a plan is sound
// for a graph and its schedule.
#pragma once

#include <arenite/plan/json.hpp>
#include <arenite/plan/step_plan.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace arenite::plan {

/// One line for each entry. Throws Error when a name is not UTF-8.
std::string to_json(const StepPlan& plan);

/// Throws Error with the byte offset (malformed text) or the path of the field (wrong contents),
/// what was found and what was expected; `where` names the text in these messages.
StepPlan step_plan_from_json(std::string_view text, std::string_view where = "step plan JSON");

/// Writes to a temporary name beside `file`, then renames: readers see all of it or nothing.
/// Throws Error when that fails.
void write_json(const StepPlan& plan, const std::filesystem::path& file);

/// Throws Error when the file cannot be read, is too large or holds no step plan.
StepPlan read_step_plan(const std::filesystem::path& file);

/// 16 hexadecimal digits that stand for everything in the plan but times (taken to plan, and of the
/// critical path): FNV-1a of its JSON. Equal on every machine.
std::string fingerprint(const StepPlan& plan);

}  // namespace arenite::plan
