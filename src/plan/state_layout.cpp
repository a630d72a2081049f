#include <arenite/error.hpp>
#include <arenite/plan/step_plan.hpp>

namespace arenite::plan {

std::int64_t StateLayout::place(const std::string& name, std::int64_t bytes, const Space& space) {
  Block& block = blocks_[to_string(space)];
  auto [it, added] = block.places.try_emplace(name, block.bytes, bytes);
  if (added) {
    block.bytes = round_up(block.bytes + bytes, default_alignment);
  } else if (it->second.second != bytes) {
    fail({.found = "persistent storage '" + name + "' of " + std::to_string(bytes) + " bytes",
          .expected = std::to_string(it->second.second) + " bytes, as in an earlier program"});
  }
  return it->second.first;
}

std::int64_t StateLayout::offset(const std::string& name, const Space& space) const {
  if (const auto block = blocks_.find(to_string(space)); block != blocks_.end()) {
    const auto it = block->second.places.find(name);
    if (it != block->second.places.end()) return it->second.first;
  }
  fail({.found = "no persistent storage '" + name + "' in " + to_string(space),
        .expected = "a name of this model"});
}

std::int64_t StateLayout::bytes(const Space& space) const {
  const auto block = blocks_.find(to_string(space));
  return block == blocks_.end() ? 0 : block->second.bytes;
}

}  // namespace arenite::plan
