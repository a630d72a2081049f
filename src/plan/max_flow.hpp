// Maximum flow by Dinic's algorithm ("Algorithm for solution of a problem of maximum flow in
// networks with power estimation", 1970), without recursion: paths may be as long as the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace arenite::plan {

class MaxFlow {
 public:
  /// More than sums of capacities come to that plans are made for.
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 2;

  explicit MaxFlow(std::size_t nodes) : first_(nodes, none) {}

  /// Returns its number.
  std::uint32_t add_arc(std::size_t from, std::size_t to, std::int64_t capacity);
  /// Along a path from the source to the sink, no more than it has room for. Returns how much.
  std::int64_t push(std::span<const std::uint32_t> arcs, std::int64_t flow);
  /// Makes the flow a maximum one, which must be finite.
  void run(std::size_t source, std::size_t sink);
  /// After run(): nodes on the source's side of the minimum cut that is nearest to the source.
  std::vector<bool> source_side(std::size_t source) const;

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  struct Arc {
    std::uint32_t to;
    std::uint32_t next;  // of the same node
    std::int64_t room;   // residual capacity; the opposite arc is at index ^ 1
  };

  bool find_levels(std::size_t source, std::size_t sink);
  bool augment(std::size_t source, std::size_t sink);

  std::vector<std::uint32_t> first_;
  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> current_;  // arc to try next
  std::vector<std::uint32_t> path_;     // arcs from the source
};

}  // namespace arenite::plan
