// Maximum flow by Dinic's algorithm ("Algorithm for solution of a problem of maximum flow in
// networks with power estimation", 1970), without recursion: paths may be as long as the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace arenite::plan {

class MaxFlow {
 public:
  /// More than any sum of capacities may be.
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 2;

  explicit MaxFlow(std::size_t nodes) : first_(nodes, none) {}

  void add_arc(std::size_t from, std::size_t to, std::int64_t capacity);
  /// The value of a maximum flow, which must be finite. Call once.
  std::int64_t run(std::size_t source, std::size_t sink);
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
  std::int64_t augment(std::size_t source, std::size_t sink);

  std::vector<std::uint32_t> first_;
  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> current_;  // arc to try next
  std::vector<std::uint32_t> path_;     // arcs from the source
};

}  // namespace arenite::plan
