#include "src/plan/max_flow.hpp"

#include <algorithm>

namespace arenite::plan {

std::uint32_t MaxFlow::add_arc(std::size_t from, std::size_t to, std::int64_t capacity) {
  const auto index = static_cast<std::uint32_t>(arcs_.size());
  arcs_.push_back({static_cast<std::uint32_t>(to), first_[from], capacity});
  arcs_.push_back({static_cast<std::uint32_t>(from), first_[to], 0});
  first_[from] = index;
  first_[to] = index + 1;
  return index;
}

std::int64_t MaxFlow::push(std::span<const std::uint32_t> arcs, std::int64_t flow) {
  for (const std::uint32_t a : arcs) flow = std::min(flow, arcs_[a].room);
  for (const std::uint32_t a : arcs) {
    arcs_[a].room -= flow;
    arcs_[a ^ 1].room += flow;
  }
  return flow;
}

void MaxFlow::run(std::size_t source, std::size_t sink) {
  while (find_levels(source, sink)) {
    current_ = first_;
    while (augment(source, sink)) {
    }
  }
}

std::vector<bool> MaxFlow::source_side(std::size_t source) const {
  std::vector<bool> seen(first_.size(), false);
  std::vector<std::size_t> open{source};
  seen[source] = true;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (std::uint32_t a = first_[node]; a != none; a = arcs_[a].next) {
      if (arcs_[a].room > 0 && !seen[arcs_[a].to]) {
        seen[arcs_[a].to] = true;
        open.push_back(arcs_[a].to);
      }
    }
  }
  return seen;
}

bool MaxFlow::find_levels(std::size_t source, std::size_t sink) {
  level_.assign(first_.size(), none);
  level_[source] = 0;
  std::vector<std::size_t> open{source};
  for (std::size_t head = 0; head < open.size() && level_[sink] == none; ++head) {
    const std::size_t node = open[head];
    for (std::uint32_t a = first_[node]; a != none; a = arcs_[a].next) {
      if (arcs_[a].room > 0 && level_[arcs_[a].to] == none) {
        level_[arcs_[a].to] = level_[node] + 1;
        open.push_back(arcs_[a].to);
      }
    }
  }
  return level_[sink] != none;
}

// Walks up the levels, steps back from dead ends, and pushes along the first path to the sink. A
// dead end is never entered again in this phase: current_ has moved past the arc to it.
bool MaxFlow::augment(std::size_t source, std::size_t sink) {
  path_.clear();
  std::size_t node = source;
  while (node != sink) {
    std::uint32_t& a = current_[node];
    while (a != none && (arcs_[a].room == 0 || level_[arcs_[a].to] != level_[node] + 1)) {
      a = arcs_[a].next;
    }
    if (a != none) {
      path_.push_back(a);
      node = arcs_[a].to;
    } else {
      if (path_.empty()) return false;
      node = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
      current_[node] = arcs_[current_[node]].next;
    }
  }
  push(path_, unlimited);
  return true;
}

}  // namespace arenite::plan
