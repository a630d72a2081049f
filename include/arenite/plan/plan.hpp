// The planner's answer, as data: an offset for every buffer, what it costs and how good it is.
//
// A plain value that owns everything in it: copy, compare, save (json.hpp), draw (draw.hpp) and
// check (verify.hpp) it. Safe to read from several threads.
#pragma once

#include <arenite/plan/problem.hpp>
#include <arenite/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::plan {

/// What shows a lower bound.
enum class Proof : std::uint8_t {
  live,    ///< the buffers alive together: max_live
  fixed,   ///< the end of a buffer whose place was given
  search,  ///< an exact search that ended without a lower plan; too long to repeat in verify()
};

std::string_view to_string(Proof proof) noexcept;

/// What one space needs. All in bytes.
struct SpacePlan {
  Space space;
  /// Of the block that holds it: the highest offset + bytes of a buffer (with bytes), rounded up
  /// to Problem::granule() and to no alignment.
  std::int64_t peak = 0;
  std::int64_t max_live = 0;     ///< what buffers alive together take at least, see lower_bounds()
  std::int64_t lower_bound = 0;  ///< no plan of this space can have a lower peak
  Proof proof = Proof::live;     ///< of the lower bound
  bool optimal = false;          ///< peak == lower_bound: proved, not hoped
  std::string strategy;          ///< which one found the offsets

  friend bool operator==(const SpacePlan&, const SpacePlan&) = default;
};

/// `next` takes bytes of `previous`, which is before it, and at least one of them had no other
/// tenant in between; of an alias group, the first by name stands for all. These pairs are the
/// edges that reuse needs: what any other two tenants of a byte need follows from them by
/// transitivity. Where `previous` has gaps, a piece of it is before one of `next`: two buffers may
/// take turns.
struct Reuse {
  std::size_t previous = 0;
  std::size_t next = 0;

  friend bool operator==(const Reuse&, const Reuse&) = default;
};

struct Plan {
  /// A copy of the problem's, in its order. Where the problem had a precedence and no lifetimes,
  /// they hold lifetimes that follow the order, for pictures and reuse.
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> offsets;  ///< bytes from the start of the space's block, by buffer
  std::vector<SpacePlan> spaces;      ///< those in use, ascending

  // Sums over the spaces, in bytes.
  std::int64_t peak = 0;
  std::int64_t max_live = 0;
  std::int64_t lower_bound = 0;
  bool optimal = true;       ///< every space is
  std::string strategy;      ///< of the spaces; several are joined by '+'
  double milliseconds = 0;   ///< taken to plan; the only field that may vary between runs
  std::vector<Reuse> reuse;  ///< sorted by (next, previous)

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Why a plan does not do: a space that needs more than it may have.
struct Shortfall {
  Space space;
  std::int64_t capacity = 0;         ///< bytes it may have
  std::int64_t needed = 0;           ///< bytes: the lower bound where proved, else the best peak
  bool proved = false;               ///< no plan fits; otherwise none was found
  std::vector<std::size_t> buffers;  ///< alive together where it is tightest, largest first

  /// "infeasible: proved" or "not found within budget".
  std::string_view verdict() const noexcept;

  friend bool operator==(const Shortfall&, const Shortfall&) = default;
};

struct PhaseBytes {
  Phase phase = Phase::forward;
  std::int64_t bytes = 0;

  friend bool operator==(const PhaseBytes&, const PhaseBytes&) = default;
};

/// For each phase that has buffers in the space, in the order of phases: how many bytes of its
/// block hold them at some time, each with its padding up to its alignment or the peak. In sum more
/// than the peak where phases share bytes. O(n log n).
std::vector<PhaseBytes> phase_bytes(const Plan& plan, const Space& space);

/// Whether i and j have a byte in common, at whatever times. Indices must be below buffers.size().
bool share_bytes(const Plan& plan, std::size_t i, std::size_t j) noexcept;

/// What Plan::reuse holds, recomputed from the buffers' lifetimes and offsets. O(n log n) and the
/// size of the answer, which is O(n).
std::vector<Reuse> find_reuse(const Plan& plan);

}  // namespace arenite::plan
