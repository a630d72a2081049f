// What only several plans together can show: that they mean the same by a block's name.
#include <arenite/error.hpp>
#include <arenite/plan/step_plan.hpp>

#include <algorithm>
#include <map>

namespace arenite::plan {
namespace {

[[noreturn]] void reject(std::string found, std::string expected) {
  fail({.found = std::move(found),
        .expected = std::move(expected),
        .where = "step plans of several programs"});
}

std::string range(const Placement& place) {
  return "'" + place.name + "' at " + std::to_string(place.offset) + "–" +
         std::to_string(place.offset + place.bytes);
}

struct SharedBlock {
  const BlockPlan* first = nullptr;
  /// By class and name, where the block is persistent.
  std::map<std::pair<graph::StorageClass, std::string>, const Placement*> places;
};

void join(SharedBlock& block, const Placement& place) {
  if (!graph::is_persistent(place.cls) && place.cls != graph::StorageClass::constant)
    reject(range(place) + " in the persistent block '" + block.first->name + "'",
           "persistent storages and constants only");
  const auto [it, added] = block.places.emplace(std::pair(place.cls, place.name), &place);
  const Placement& known = *it->second;
  if (added || (known.offset == place.offset && known.bytes == place.bytes)) return;
  reject(range(place) + " of block '" + block.first->name + "' in one program, at " +
             std::to_string(known.offset) + "–" + std::to_string(known.offset + known.bytes) +
             " in another",
         "one place");
}

void check_apart(const SharedBlock& block) {
  std::vector<const Placement*> places;
  for (const auto& [key, place] : block.places) {
    if (place->bytes > 0) places.push_back(place);
  }
  std::sort(places.begin(), places.end(), [](const Placement* a, const Placement* b) {
    return a->offset < b->offset;  // of equal ones, either order shows the overlap
  });
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i]->offset >= places[i - 1]->offset + places[i - 1]->bytes) continue;
    reject(range(*places[i - 1]) + " and " + range(*places[i]) + " overlap in block '" +
               block.first->name + "'",
           "bytes of their own");
  }
}

}  // namespace

void verify_together(std::span<const StepPlan* const> plans) {
  std::map<std::string, SharedBlock> blocks;
  for (const StepPlan* plan : plans) {
    for (const BlockPlan& block : plan->blocks) {
      const BlockPlan*& first = blocks[block.name].first;
      if (first == nullptr) first = &block;
      if (first->space != block.space)
        reject("block '" + block.name + "' in " + to_string(block.space) + " and " +
                   to_string(first->space),
               "one space");
      if (first->persistent != block.persistent || first->per_task_set != block.per_task_set)
        reject("block '" + block.name + "' of two kinds",
               "persistent, one a task set, or neither in every program");
    }
    for (const Placement& place : plan->placements) {
      if (place.external) continue;
      SharedBlock& block = blocks.at(plan->blocks.at(place.block).name);
      if (block.first->persistent) join(block, place);
    }
  }
  for (const auto& [name, block] : blocks) check_apart(block);
}

}  // namespace arenite::plan
