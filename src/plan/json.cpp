#include <arenite/plan/json.hpp>

#include <arenite/error.hpp>
#include <arenite/plan/problem.hpp>

#include <map>

#include "src/base/atomic_file.hpp"
#include "src/plan/json_field.hpp"

namespace arenite::plan {
namespace {

constexpr std::string_view format_name = "arenite plan 1";

Json space_object(const SpacePlan& plan, const std::vector<PhaseBytes>& phases) {
  Json object{{"space", to_string(plan.space)}};
  if (plan.space.capacity != no_capacity) object["capacity"] = plan.space.capacity;
  object["peak"] = plan.peak;
  object["max_live"] = plan.max_live;
  object["lower_bound"] = plan.lower_bound;
  object["proof"] = to_string(plan.proof);
  object["optimal"] = plan.optimal;
  object["strategy"] = plan.strategy;
  for (const PhaseBytes& phase : phases) {
    object[std::string(to_string(phase.phase)) + "_bytes"] = phase.bytes;
  }
  return object;
}

Json buffer_object(const Buffer& buffer, std::int64_t offset) {
  Json object{{"name", buffer.name},
              {"bytes", buffer.bytes},
              {"offset", offset},
              {"begin", buffer.lifetime.begin},
              {"end", buffer.lifetime.end},
              {"alignment", buffer.alignment},
              {"space", to_string(buffer.space)},
              {"phase", to_string(buffer.phase)},
              {"label", buffer.label}};
  for (const auto [begin, end] : buffer.gaps) object["gaps"].push_back(Json::list(begin, end));
  if (buffer.offset) object["fixed"] = true;
  if (!buffer.alias.empty()) object["alias"] = buffer.alias;
  return object;
}

Proof parse_proof(const Field& field) {
  for (const Proof proof : {Proof::live, Proof::fixed, Proof::search}) {
    if (field.text() == to_string(proof)) return proof;
  }
  field.wrong("'" + field.text() + "'", "'live', 'fixed' or 'search'");
}

std::string shortfall_lines(const Plan& plan, const Shortfall& shortfall) {
  Json names = Json::list();
  for (const std::size_t i : shortfall.buffers) names.push_back(plan.buffers[i].name);
  return " \"verdict\": " + Json(shortfall.verdict()).dump() +
         ", \"capacity\": " + std::to_string(shortfall.capacity) +
         ", \"bytes_needed\": " + std::to_string(shortfall.needed) +
         ",\n \"buffers_at_peak\": " + names.dump() + ",\n";
}

using Spaces = std::map<std::string, Space>;

void read_space(const Field& entry, Plan& plan, Spaces& spaces) {
  SpacePlan space;
  space.space = parse_space(entry["space"]);
  if (entry.has("capacity")) space.space.capacity = entry["capacity"].integer(0, no_capacity);
  space.peak = entry["peak"].integer(0);
  space.max_live = entry["max_live"].integer(0);
  space.lower_bound = entry["lower_bound"].integer(0);
  if (entry.has("proof")) space.proof = parse_proof(entry["proof"]);
  space.optimal = entry["optimal"].boolean();
  space.strategy = entry["strategy"].text();
  if (!spaces.emplace(to_string(space.space), space.space).second) {
    entry["space"].wrong("a second entry for " + to_string(space.space), "one for each space");
  }
  plan.spaces.push_back(std::move(space));
}

void read_buffer(const Field& entry, Plan& plan, const Spaces& spaces, Problem& checks) {
  Buffer buffer;
  buffer.name = entry["name"].text();
  buffer.bytes = entry["bytes"].integer(0);
  buffer.lifetime.begin = entry["begin"].integer(-Problem::limit, Problem::limit);
  buffer.lifetime.end = entry["end"].integer(buffer.lifetime.begin + 1, Problem::limit);
  if (entry.has("gaps")) {
    const Field gaps = entry["gaps"];
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const Field pair = gaps[i];
      if (pair.size() != 2) pair.wrong(std::to_string(pair.size()) + " entries", "two");
      buffer.gaps.push_back({pair[std::size_t{0}].integer(-Problem::limit, Problem::limit),
                             pair[std::size_t{1}].integer(-Problem::limit, Problem::limit)});
    }
  }
  if (entry.has("alignment")) buffer.alignment = entry["alignment"].integer(1);
  const std::string space =
      entry.has("space") ? to_string(parse_space(entry["space"])) : to_string(Space{});
  const auto known = spaces.find(space);
  if (known == spaces.end()) entry.wrong("space '" + space + "'", "one listed in 'spaces'");
  buffer.space = known->second;
  if (entry.has("label")) buffer.label = entry["label"].text();
  if (entry.has("alias")) buffer.alias = entry["alias"].text();
  const std::int64_t offset = entry["offset"].integer(0);
  if (entry.has("fixed") && entry["fixed"].boolean()) buffer.offset = offset;
  try {
    if (entry.has("phase")) buffer.phase = parse_phase(entry["phase"].text());
    checks.add(buffer);
  } catch (const Error& error) {
    entry.wrong(error.text().found, error.text().expected);
  }
  plan.buffers.push_back(std::move(buffer));
  plan.offsets.push_back(offset);
}

}  // namespace

Plan read_plan(const Json& document, std::string_view where) {
  const Field root(document, "", where);
  Plan plan;
  plan.peak = root["peak"].integer(0);
  if (root.has("format")) root["format"].expect(format_name);
  plan.max_live = root["max_live"].integer(0);
  plan.lower_bound = root["lower_bound"].integer(0);
  plan.optimal = root["optimal"].boolean();
  plan.strategy = root["strategy"].text();
  plan.milliseconds = root["milliseconds"].duration();

  Spaces spaces;
  const Field space_entries = root["spaces"];
  for (std::size_t i = 0; i < space_entries.size(); ++i) {
    read_space(space_entries[i], plan, spaces);
  }
  Problem checks;  // what add() refuses, no plan may hold
  const Field buffers = root["buffers"];
  for (std::size_t i = 0; i < buffers.size(); ++i) read_buffer(buffers[i], plan, spaces, checks);

  if (!root.has("reuse")) {
    plan.reuse = find_reuse(plan);
    return plan;
  }
  const Field reuse = root["reuse"];
  const std::int64_t last = static_cast<std::int64_t>(plan.buffers.size()) - 1;
  for (std::size_t i = 0; i < reuse.size(); ++i) {
    const Field pair = reuse[i];
    if (pair.size() != 2) pair.wrong(std::to_string(pair.size()) + " entries", "two");
    plan.reuse.push_back({static_cast<std::size_t>(pair[std::size_t{0}].integer(0, last)),
                          static_cast<std::size_t>(pair[std::size_t{1}].integer(0, last))});
  }
  return plan;
}

std::string to_json(const Plan& plan, const std::optional<Shortfall>& shortfall,
                    std::string_view more) {
  const auto line = [](const Json& object) { return object.dump(); };
  std::string text = "{\"format\": " + line(format_name) + ",\n";
  if (shortfall) text += shortfall_lines(plan, *shortfall);
  text += " \"peak\": " + line(plan.peak) + ", \"max_live\": " + line(plan.max_live);
  text += ", \"lower_bound\": " + line(plan.lower_bound);
  text += ",\n \"optimal\": " + line(plan.optimal) + ", \"strategy\": " + line(plan.strategy);
  text += ", \"milliseconds\": " + line(plan.milliseconds);
  if (!more.empty()) text += ",\n " + std::string(more);
  append_list(text, "spaces", plan.spaces, [&](const SpacePlan& space) {
    return line(space_object(space, phase_bytes(plan, space.space)));
  });
  auto offset = plan.offsets.begin();
  append_list(text, "buffers", plan.buffers,
              [&](const Buffer& buffer) { return line(buffer_object(buffer, *offset++)); });
  text += ",\n \"reuse\": [";
  for (std::size_t i = 0; i < plan.reuse.size(); ++i) {
    text += (i == 0        ? ""
             : i % 16 == 0 ? ",\n  "
                           : ", ") +
            std::string("[") + std::to_string(plan.reuse[i].previous) + ", " +
            std::to_string(plan.reuse[i].next) + "]";
  }
  return text + "]\n}\n";
}

Plan from_json(std::string_view text, std::string_view where) {
  return read_plan(parse_document(text, where, 3), where);
}

void write_json(const Plan& plan, const std::filesystem::path& file) {
  write_file(file, to_json(plan));
}

Plan read_json(const std::filesystem::path& file) {
  return from_json(read_document(file), file.string());
}

}  // namespace arenite::plan
