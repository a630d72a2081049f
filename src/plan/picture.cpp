#include "src/plan/picture.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "src/base/refuse.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

void fill_times(const Plan& plan, Panel& panel) {
  std::map<std::int64_t, std::int64_t> changes;
  for (const std::size_t i : panel.buffers) {
    for (const Lifetime& piece : pieces(plan.buffers[i])) {
      changes[piece.begin] += plan.buffers[i].bytes;
      changes[piece.end] -= plan.buffers[i].bytes;
    }
  }
  if (changes.empty()) return;
  panel.begin = changes.begin()->first;
  panel.end = changes.rbegin()->first;
  std::int64_t live = 0;
  for (const auto& [time, change] : changes) {
    if (change != 0) panel.live.emplace_back(time, live += change);
  }
}

}  // namespace

std::vector<Panel> panels(const Plan& plan) {
  const char* where = "plan::draw";
  if (plan.offsets.size() != plan.buffers.size()) {
    refuse(std::to_string(plan.offsets.size()) + " offsets",
           std::to_string(plan.buffers.size()) + ", one for each buffer", where);
  }
  std::vector<Panel> result;
  std::map<Space, std::size_t> index;
  // Pictures may be asked for before verify(): what would break their arithmetic is refused.
  constexpr std::int64_t most = 2 * Problem::limit;
  for (const SpacePlan& space : plan.spaces) {
    if (space.peak < 0 || space.peak > most) {
      refuse("a peak of " + digits(space.peak) + " bytes", "0 to 2^61", where);
    }
    index.emplace(space.space, result.size());
    result.push_back({.space = space});
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    const auto panel = index.find(buffer.space);
    if (panel == index.end()) {
      refuse("buffer '" + buffer.name + "' in " + to_string(buffer.space),
             "a space that the plan lists", where);
    }
    const auto [begin, end] = buffer.lifetime;
    if (begin >= end || begin < -Problem::limit || end > Problem::limit) {
      refuse("buffer " + quoted(buffer), "a lifetime", where);
    }
    for (const Lifetime& piece : pieces(buffer)) {
      if (piece.begin >= piece.end) {
        refuse("buffer " + quoted(buffer), "gaps within its lifetime, ascending and apart", where);
      }
    }
    if (plan.offsets[i] < 0 || plan.offsets[i] > most || buffer.bytes > Problem::limit) {
      refuse("buffer " + quoted(buffer) + " at offset " + digits(plan.offsets[i]),
             "sizes to 2^60 and offsets to 2^61", where);
    }
    if (buffer.bytes > 0) result[panel->second].buffers.push_back(i);
  }
  for (Panel& panel : result) {
    const auto key = [&](std::size_t i) {
      return std::tuple(plan.buffers[i].lifetime.begin, plan.offsets[i]);
    };
    std::stable_sort(panel.buffers.begin(), panel.buffers.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    fill_times(plan, panel);
  }
  return result;
}

}  // namespace arenite::plan
