// Buffers that are views of the same bytes, taken as one.
#pragma once

#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>

#include <cstddef>
#include <vector>

namespace arenite::plan {

bool has_aliases(const std::vector<Buffer>& buffers) noexcept;

/// Each alias group as one buffer: the largest size and alignment, alive from its first begin to
/// its last end, since the bytes stay between a write and whatever view reads them last. Buffers
/// without a group are groups of one, and keep their gaps.
struct AliasGroups {
  explicit AliasGroups(const std::vector<Buffer>& buffers);

  /// A group's buffer, named after its first member by name.
  Buffer merged(const std::vector<Buffer>& buffers, std::size_t g) const;

  std::vector<std::size_t> first;                 ///< by group: its first buffer by name
  std::vector<std::vector<std::size_t>> members;  ///< by group, ascending
};

/// The problem of the groups. One group is before another iff all its buffers are.
Problem merge(const Problem& problem, const AliasGroups& groups);
/// A plan of the groups: offsets are those of first members; reuse is found anew.
Plan merge(const Plan& plan, const AliasGroups& groups);

}  // namespace arenite::plan
