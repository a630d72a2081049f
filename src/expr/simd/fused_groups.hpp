// Loops that run a whole formula over a group's elements: those of rows in formulas.def.
#pragma once

#include <arenite/expr/expression.hpp>

#include <optional>
#include <vector>

namespace arenite::expr {

/// Groups, one after the other. The elements of each lie one behind the other: at least one.
struct GroupCall {
  std::size_t groups;
  const std::int64_t* steps;  ///< elements from group to group, of operands, then of results
  /// Of one that is the same for all elements, 16 of it, and its bit in `splats` is set.
  const void* const* operands;
  std::uint64_t splats;
  std::size_t count;
  void* const* results;  ///< may lie where operands do
  float* kept;           ///< as many rows, each of a multiple of 16 elements
  bool is_one;           ///< the only result
  const double* numbers;
};
using GroupLoop = void (*)(const GroupCall& call);

struct FusedGroups {
  GroupLoop loop;
  std::size_t kept;     ///< rows that it keeps from one sweep over the elements to the next
  bool is_one = false;  ///< the only result is one for a group
  std::vector<double> numbers;
};

/// Nothing: there is none for this expression, of which `count()` is no constant yet. The bits are
/// those of its instructions and totals. Throws Error as find_loop does.
std::optional<FusedGroups> find_fused_groups(const Expression& expression);

}  // namespace arenite::expr
