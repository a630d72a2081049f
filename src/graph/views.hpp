// Which results of an op are views, and where values lie.
#pragma once

#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace arenite::graph {

/// Where each result that is a view lies. Most ops have none: then nothing is allocated.
class ResultViews {
 public:
  ResultViews(const Graph& graph, const Op& op);

  std::size_t size() const noexcept { return size_; }
  const std::optional<ViewOf>& operator[](std::size_t result) const noexcept {
    static constexpr std::optional<ViewOf> none;
    return result < views_.size() ? views_[result] : none;
  }
  /// There are results, and all of them are views.
  bool all() const noexcept;

 private:
  std::size_t size_;
  std::vector<std::optional<ViewOf>> views_;
};

inline ResultViews result_views(const Graph& graph, const Op& op) { return {graph, op}; }

/// Which of an op's results the value is; their number where it is none of them.
inline std::size_t result_index(const Op& op, ValueId value) {
  return static_cast<std::size_t>(std::ranges::find(op.results, value) - op.results.begin());
}

/// The value's first byte in its storage, and the one behind its last.
inline std::pair<std::int64_t, std::int64_t> byte_range(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  return {value.offset, value.offset + byte_size(value.type, value.shape, value.layout)};
}

/// All ops of a region: those in the order given, each of the others as early as can be.
std::vector<OpId> with_others_early(const Graph& graph, RegionId region,
                                    const std::vector<OpId>& order);

/// Views lie where their owners do, which may be other values now.
void move_views(Graph& graph, OpId id);

}  // namespace arenite::graph
