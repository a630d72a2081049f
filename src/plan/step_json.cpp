#include <arenite/plan/step_json.hpp>

#include <arenite/error.hpp>

#include <spdlog/fmt/fmt.h>

#include "src/base/atomic_file.hpp"
#include "src/plan/json_field.hpp"

namespace arenite::plan {
namespace {

constexpr std::string_view format_name = "arenite step plan 1";
constexpr std::int64_t last_id = graph::StorageId::none - 1;

Json block_object(const BlockPlan& block) {
  Json object{{"name", block.name}, {"space", to_string(block.space)}};
  if (block.space.capacity != no_capacity) object["capacity"] = block.space.capacity;
  object["bytes"] = block.bytes;
  object["per_task_set"] = block.per_task_set;
  object["persistent"] = block.persistent;
  return object;
}

Json placement_object(const Placement& place) {
  Json object{
      {"storage", place.storage.index}, {"name", place.name}, {"class", to_string(place.cls)}};
  if (place.external) {
    object["external"] = true;
  } else {
    object["block"] = place.block;
    object["offset"] = place.offset;
  }
  object["bytes"] = place.bytes;
  object["phase"] = to_string(place.phase);
  object["saved"] = place.saved;
  return object;
}

/// What `parse` makes of the text of a field; its error gets the field's place.
template <class Parse>
auto parsed(const Field& field, Parse parse) {
  const std::string text = field.text();
  try {
    return parse(text);
  } catch (const Error& error) {
    field.wrong(error.text().found, error.text().expected);
  }
}

BlockPlan read_block(const Field& entry) {
  BlockPlan block;
  block.name = entry["name"].text();
  block.space = parse_space(entry["space"]);
  if (entry.has("capacity")) block.space.capacity = entry["capacity"].integer(0, no_capacity);
  block.bytes = entry["bytes"].integer(0);
  block.per_task_set = entry["per_task_set"].boolean();
  block.persistent = entry["persistent"].boolean();
  return block;
}

ArenaPlan read_arena(const Field& entry) {
  return {.phase = parsed(entry["phase"], parse_phase),
          .block = entry["block"].text(),
          .peak = entry["peak"].integer(0),
          .separate = entry["separate"].integer(0)};
}

Placement read_placement(const Field& entry, std::size_t blocks) {
  Placement place;
  place.storage = graph::StorageId(static_cast<std::size_t>(entry["storage"].integer(0, last_id)));
  place.name = entry["name"].text();
  place.cls = parsed(entry["class"], graph::parse_storage_class);
  place.external = entry.has("external") && entry["external"].boolean();
  if (!place.external) {
    const std::int64_t last_block = static_cast<std::int64_t>(blocks) - 1;
    place.block = static_cast<std::size_t>(entry["block"].integer(0, last_block));
    place.offset = entry["offset"].integer(0);
  }
  place.bytes = entry["bytes"].integer(0);
  place.phase = parsed(entry["phase"], parse_phase);
  place.saved = entry["saved"].boolean();
  return place;
}

TaskEdge read_edge(const Field& pair) {
  if (pair.size() != 2) pair.wrong(std::to_string(pair.size()) + " entries", "two");
  const std::int64_t before = pair[std::size_t{0}].integer(0, last_id - 1);
  const std::int64_t after = pair[std::size_t{1}].integer(before + 1, last_id);
  return {graph::TaskId(static_cast<std::size_t>(before)),
          graph::TaskId(static_cast<std::size_t>(after))};
}

StepPlan read_step(const Field& root) {
  root["format"].expect(format_name);
  StepPlan plan;
  plan.layout = parsed(root["layout"], parse_arena_layout);
  plan.lower_bound = root["lower_bound"].integer(0);
  plan.separate = root["separate"].integer(0);
  plan.optimal = root["optimal"].boolean();
  plan.critical_path = root["critical_path"].duration();
  plan.critical_path_without = root["critical_path_without"].duration();

  const Field blocks = root["blocks"], arenas = root["arenas"], places = root["placements"];
  for (std::size_t i = 0; i < blocks.size(); ++i) plan.blocks.push_back(read_block(blocks[i]));
  for (std::size_t i = 0; i < arenas.size(); ++i) plan.arenas.push_back(read_arena(arenas[i]));
  for (std::size_t i = 0; i < places.size(); ++i) {
    Placement place = read_placement(places[i], plan.blocks.size());
    // StepPlan::placement() searches them.
    if (i > 0 && plan.placements.back().storage >= place.storage) {
      const std::uint32_t previous = plan.placements.back().storage.index;
      places[i]["storage"].wrong(
          std::to_string(place.storage.index) + " after " + std::to_string(previous),
          "ascending numbers");
    }
    plan.placements.push_back(std::move(place));
  }
  const Field reuse = root["reuse"], packings = root["packings"];
  for (std::size_t i = 0; i < reuse.size(); ++i) plan.reuse_edges.push_back(read_edge(reuse[i]));
  for (std::size_t i = 0; i < packings.size(); ++i)
    plan.packings.push_back(read_plan(packings[i].value(), packings[i].place()));
  return plan;
}

}  // namespace

Json json_of(const ArenaPlan& arena) {
  return {{"phase", to_string(arena.phase)},
          {"block", arena.block},
          {"peak", arena.peak},
          {"separate", arena.separate}};
}

std::string to_json(const StepPlan& plan) {
  const auto line = [](const Json& object) { return object.dump(); };
  std::string text = "{\"format\": " + line(format_name);
  text += ", \"layout\": " + line(to_string(plan.layout));
  text += ",\n \"lower_bound\": " + line(plan.lower_bound);
  text += ", \"separate\": " + line(plan.separate) + ", \"optimal\": " + line(plan.optimal);
  text += ",\n \"critical_path\": " + line(plan.critical_path);
  text += ", \"critical_path_without\": " + line(plan.critical_path_without);
  append_list(text, "blocks", plan.blocks,
              [&](const auto& block) { return line(block_object(block)); });
  append_list(text, "arenas", plan.arenas, [&](const auto& arena) { return line(json_of(arena)); });
  append_list(text, "placements", plan.placements,
              [&](const auto& place) { return line(placement_object(place)); });
  append_list(text, "reuse", plan.reuse_edges, [](const TaskEdge& edge) {
    return "[" + std::to_string(edge.before.index) + ", " + std::to_string(edge.after.index) + "]";
  });
  append_list(text, "packings", plan.packings,
              [](const Plan& packing) { return to_json(packing); });
  return text + "\n}\n";
}

StepPlan step_plan_from_json(std::string_view text, std::string_view where) {
  const Json document = parse_document(text, where, 5);
  return read_step(Field(document, "", where));
}

void write_json(const StepPlan& plan, const std::filesystem::path& file) {
  write_file(file, to_json(plan));
}

StepPlan read_step_plan(const std::filesystem::path& file) {
  return step_plan_from_json(read_document(file), file.string());
}

std::string fingerprint(const StepPlan& plan) {
  StepPlan timeless = plan;
  timeless.critical_path = timeless.critical_path_without = 0;
  for (Plan& packing : timeless.packings) packing.milliseconds = 0;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : to_json(timeless)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace arenite::plan
