#include <arenite/plan/verify.hpp>

#include <arenite/plan/solve.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/refuse.hpp"
#include "src/plan/alias.hpp"
#include "src/plan/overlap.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

constexpr const char* where = "plan::verify";

std::string placed_text(const Buffer& buffer, std::int64_t offset) {
  return quoted(buffer) + " at offset " + digits(offset);
}

class Verifier {
 public:
  Verifier(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan) {}

  /// What each buffer of an alias group has to be by itself.
  void check_members() {
    match_buffers();
    check_lifetimes();
    std::unordered_map<std::string_view, std::size_t> first;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      check_place(problem_[i], offsets_[i]);
      if (problem_[i].alias.empty()) continue;
      const std::size_t other = first.try_emplace(problem_[i].alias, i).first->second;
      if (offsets_[i] != offsets_[other]) {
        refuse(placed_text(problem_[other], offsets_[other]) + " and " +
                   placed_text(problem_[i], offsets_[i]),
               "one offset for all with the alias '" + problem_[i].alias + "'", where);
      }
    }
    check_reuse();
  }

  void run() {
    problem_.validate();
    match_buffers();
    check_lifetimes();
    for (std::size_t i = 0; i < problem_.size(); ++i) check_place(problem_[i], offsets_[i]);
    check_overlaps();
    check_spaces();
    check_totals();
    check_reuse();
  }

 private:
  /// Fills offsets_ and plan_index_, by buffer of the problem.
  void match_buffers() {
    const std::size_t n = problem_.size();
    if (plan_.buffers.size() != n || plan_.offsets.size() != n) {
      refuse("a plan of " + std::to_string(plan_.buffers.size()) + " buffers and " +
                 std::to_string(plan_.offsets.size()) + " offsets",
             std::to_string(n) + " of each, as in the problem", where);
    }
    std::unordered_map<std::string_view, std::size_t> by_name;
    for (std::size_t p = 0; p < n; ++p) by_name.emplace(plan_.buffers[p].name, p);
    for (std::size_t i = 0; i < n; ++i) {
      const Buffer& wanted = problem_[i];
      const auto found = by_name.find(wanted.name);
      if (found == by_name.end()) {
        refuse("a plan without buffer '" + wanted.name + "'", "every buffer of the problem once",
               where);
      }
      const Buffer& planned = plan_.buffers[found->second];
      if (planned.bytes != wanted.bytes || planned.alignment != wanted.alignment ||
          planned.space != wanted.space || planned.alias != wanted.alias ||
          planned.gaps.size() != wanted.gaps.size() ||
          (problem_.precedence() == nullptr &&
           (planned.lifetime != wanted.lifetime || planned.gaps != wanted.gaps))) {
        const auto text = [](const Buffer& buffer) {
          return quoted(buffer) + ", aligned to " + digits(buffer.alignment) + ", in " +
                 to_string(buffer.space) +
                 (buffer.alias.empty() ? "" : ", with the alias '" + buffer.alias + "'");
        };
        refuse("a plan for " + text(planned), text(wanted) + ", as the problem has it", where);
      }
      offsets_.push_back(plan_.offsets[found->second]);
      plan_index_.push_back(found->second);
    }
  }

  /// With a precedence, the plan's lifetimes carry its pictures and its reuse.
  void check_lifetimes() const {
    if (problem_.precedence() == nullptr) return;
    std::vector<Lifetime> times;  // by piece
    std::vector<const Buffer*> owners;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const Buffer& buffer = plan_.buffers[plan_index_[i]];
      for (const Lifetime& piece : pieces(buffer)) {
        times.push_back(piece);
        owners.push_back(&buffer);
        if (piece.begin >= piece.end) {
          refuse(quoted(buffer), "a lifetime", where);
        }
      }
    }
    for (std::size_t p = 0; p < times.size(); ++p) {
      for (std::size_t q = 0; q < times.size(); ++q) {
        if (problem_.precedence()->before(p, q) && times[p].end > times[q].begin) {
          refuse(quoted(*owners[p]) + " and " + quoted(*owners[q]) + " overlap in time",
                 "lifetimes that follow the precedence: the first is before the second", where);
        }
      }
    }
  }

  static void check_place(const Buffer& buffer, std::int64_t offset) {
    if (offset < 0) {
      refuse(placed_text(buffer, offset), "an offset of at least 0", where);
    }
    // Sums of valid sizes stay below the limit, so no sensible plan comes near; offset + bytes
    // must not overflow below.
    if (offset > 2 * Problem::limit) {
      refuse(placed_text(buffer, offset), "an offset of at most 2^61", where);
    }
    if (offset % buffer.alignment != 0) {
      refuse(placed_text(buffer, offset), "a multiple of its alignment " + digits(buffer.alignment),
             where);
    }
    if (buffer.offset && offset != *buffer.offset) {
      refuse(placed_text(buffer, offset), "its fixed offset " + digits(*buffer.offset), where);
    }
  }

  void check_overlaps() const {
    std::vector<Placed> placed;
    for (std::size_t i = 0; i < problem_.size(); ++i) placed.push_back({i, offsets_[i]});
    if (const auto overlap = find_overlap(problem_, placed)) {
      const auto& [low, high] = *overlap;
      refuse(placed_text(problem_[low.buffer], low.offset) + " and " +
                 placed_text(problem_[high.buffer], high.offset) +
                 " overlap and may be alive together",
             "bytes of their own for each",
             where + std::string(", space ") + to_string(problem_[low.buffer].space));
    }
  }

  void check_spaces() const {
    std::map<Space, std::int64_t> tops;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      std::int64_t& top = tops[problem_[i].space];
      if (problem_[i].bytes > 0) top = std::max(top, offsets_[i] + problem_[i].bytes);
    }
    const std::vector<LowerBound> bounds = lower_bounds(problem_);
    if (plan_.spaces.size() != tops.size()) {
      refuse("a plan of " + std::to_string(plan_.spaces.size()) + " spaces",
             std::to_string(tops.size()), where);
    }
    std::size_t s = 0;
    for (const auto& [space, top] : tops) {
      check_space(plan_.spaces[s++], space, round_up(top, problem_.granule()), bounds);
    }
  }

  void check_space(const SpacePlan& claim, const Space& space, std::int64_t peak,
                   const std::vector<LowerBound>& bounds) const {
    if (claim.space != space) {
      refuse("space " + to_string(claim.space) + " of capacity " + digits(claim.space.capacity),
             to_string(space) + " of capacity " + digits(space.capacity), where);
    }
    const std::string place = where + std::string(", space ") + to_string(space);
    if (claim.peak != peak) {
      refuse("a reported peak of " + digits(claim.peak),
             digits(peak) + ", the highest end of a buffer" +
                 (problem_.granule() == 1
                      ? ""
                      : ", in multiples of " + digits(problem_.granule()) + " bytes"),
             place);
    }
    if (peak > space.capacity) {
      refuse("a peak of " + digits(peak), "at most the capacity of " + digits(space.capacity),
             place);
    }
    const auto& bound = *std::find_if(bounds.begin(), bounds.end(),
                                      [&](const LowerBound& b) { return b.space == space; });
    if (claim.max_live != bound.max_live) {
      refuse("a reported max_live of " + digits(claim.max_live), digits(bound.max_live), place);
    }
    // What a search proved cannot be confirmed but by another search.
    const std::int64_t highest = claim.proof == Proof::search ? claim.peak : bound.lower_bound;
    if (claim.lower_bound < claim.max_live || claim.lower_bound > highest) {
      refuse("a claimed lower bound of " + digits(claim.lower_bound),
             "between max_live " + digits(claim.max_live) + " and " +
                 (claim.proof == Proof::search
                      ? "the peak " + digits(claim.peak)
                      : digits(bound.lower_bound) + ", which can be confirmed"),
             place);
    }
    if (claim.optimal != (claim.peak == claim.lower_bound)) {
      refuse(std::string("a plan called ") + (claim.optimal ? "" : "not ") + "optimal with peak " +
                 digits(claim.peak) + " and lower bound " + digits(claim.lower_bound),
             "'optimal' exactly when the two are equal", place);
    }
  }

  void check_totals() const {
    std::int64_t peak = 0;
    std::int64_t live = 0;
    std::int64_t bound = 0;
    bool optimal = true;
    for (const SpacePlan& space : plan_.spaces) {
      // Bounds are no larger than the peaks they belong to.
      if (space.peak > 2 * Problem::limit - peak) {
        refuse("spaces whose peaks pass 2^61 bytes in sum", "a sum of at most 2^61", where);
      }
      peak += space.peak;
      live += space.max_live;
      bound += space.lower_bound;
      optimal = optimal && space.optimal;
    }
    if (plan_.peak != peak || plan_.max_live != live || plan_.lower_bound != bound ||
        plan_.optimal != optimal) {
      const auto text = [](std::int64_t p, std::int64_t m, std::int64_t b, bool o) {
        return "peak " + digits(p) + ", max_live " + digits(m) + ", lower bound " + digits(b) +
               (o ? ", optimal" : ", not optimal");
      };
      refuse("totals of " + text(plan_.peak, plan_.max_live, plan_.lower_bound, plan_.optimal),
             text(peak, live, bound, optimal) + ", as the spaces sum up", where);
    }
  }

  void check_reuse() const {
    const std::vector<Reuse> reuse = find_reuse(plan_);
    if (plan_.reuse == reuse) return;
    const auto [claim, right] =
        std::mismatch(plan_.reuse.begin(), plan_.reuse.end(), reuse.begin(), reuse.end());
    const auto text = [&](const std::vector<Reuse>& all, auto it) {
      if (it == all.end()) return std::string("no further pair");
      const std::size_t n = plan_.buffers.size();
      if (it->previous >= n || it->next >= n) return std::string("an index out of range");
      return "'" + plan_.buffers[it->next].name + "' after '" + plan_.buffers[it->previous].name +
             "'";
    };
    refuse("reuse of bytes: " + text(plan_.reuse, claim), text(reuse, right), where);
  }

  const Problem& problem_;
  const Plan& plan_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> plan_index_;
};

}  // namespace

void verify(const Problem& problem, const Plan& plan) {
  if (!has_aliases(problem.buffers()) && !has_aliases(plan.buffers)) {
    Verifier(problem, plan).run();
    return;
  }
  problem.validate();
  Verifier(problem, plan).check_members();
  const Problem groups = merge(problem, AliasGroups(problem.buffers()));
  const Plan of_groups = merge(plan, AliasGroups(plan.buffers));
  Verifier(groups, of_groups).run();
}

}  // namespace arenite::plan
