#include <arenite/plan/plan.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "src/base/names.hpp"
#include "src/plan/alias.hpp"
#include "src/plan/overlap.hpp"
#include "src/plan/piece_reuse.hpp"

namespace arenite::plan {
namespace {

constexpr Names<Proof, 3> proof_names{
    {{Proof::live, "live"}, {Proof::fixed, "fixed"}, {Proof::search, "search"}}};

bool by_next(const Reuse& a, const Reuse& b) noexcept {
  return a.next != b.next ? a.next < b.next : a.previous < b.previous;
}

}  // namespace

std::string_view to_string(Proof proof) noexcept { return name_of(proof, proof_names); }

std::string_view Shortfall::verdict() const noexcept {
  return proved ? "infeasible: proved" : "not found within budget";
}

std::vector<PhaseBytes> phase_bytes(const Plan& plan, const Space& space) {
  const auto in_use = std::find_if(plan.spaces.begin(), plan.spaces.end(),
                                   [&](const SpacePlan& s) { return s.space == space; });
  if (in_use == plan.spaces.end()) return {};
  std::map<Phase, std::vector<ByteRange>> ranges;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.space != space || buffer.bytes == 0) continue;
    const std::int64_t end = plan.offsets[i] + round_up(buffer.bytes, buffer.alignment);
    ranges[buffer.phase].push_back({plan.offsets[i], std::min(end, in_use->peak)});
  }
  std::vector<PhaseBytes> result;
  for (auto& [phase, of_phase] : ranges) {
    result.push_back({phase, bytes_covered(std::move(of_phase))});
  }
  return result;
}

bool share_bytes(const Plan& plan, std::size_t i, std::size_t j) noexcept {
  const Buffer& a = plan.buffers[i];
  const Buffer& b = plan.buffers[j];
  return a.space == b.space && a.bytes > 0 && b.bytes > 0 &&
         plan.offsets[i] < plan.offsets[j] + b.bytes && plan.offsets[j] < plan.offsets[i] + a.bytes;
}

// Keeps, for each space, the last tenant of every byte as a map of disjoint ranges. A new tenant
// replaces what lies under it and splits at most two ranges, so that all work is linear in n.
std::vector<PieceReuse> find_piece_reuse(const Plan& plan) {
  struct Tenant {
    BufferPiece piece;
    std::int64_t begin;
  };
  struct Range {
    std::int64_t end;
    BufferPiece tenant;
  };
  std::map<Space, std::map<std::int64_t, Range>> last;
  std::vector<Tenant> by_begin;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].bytes == 0) continue;
    std::size_t number = 0;
    for (const Lifetime& piece : pieces(plan.buffers[i])) {
      by_begin.push_back({{i, number++}, piece.begin});
    }
  }
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [](const Tenant& a, const Tenant& b) { return a.begin < b.begin; });

  std::vector<PieceReuse> reuse;
  for (const auto& [tenant, begin] : by_begin) {
    const std::size_t i = tenant.buffer;
    auto& ranges = last[plan.buffers[i].space];
    const std::int64_t start = plan.offsets[i];
    const std::int64_t end = start + plan.buffers[i].bytes;

    auto at = ranges.lower_bound(start);
    if (at != ranges.begin() && std::prev(at)->second.end > start) --at;
    while (at != ranges.end() && at->first < end) {
      const auto [first, old] = *at;
      if (old.tenant.buffer != i) reuse.push_back({tenant, old.tenant});
      at = ranges.erase(at);
      if (first < start) ranges.emplace(first, Range{start, old.tenant});
      if (old.end > end) ranges.emplace(end, Range{old.end, old.tenant});
    }
    ranges.emplace(start, Range{end, tenant});
  }
  std::sort(reuse.begin(), reuse.end());
  reuse.erase(std::unique(reuse.begin(), reuse.end()), reuse.end());
  return reuse;
}

std::vector<Reuse> find_reuse(const Plan& plan) {
  std::vector<Reuse> reuse;
  if (has_aliases(plan.buffers)) {
    const AliasGroups groups(plan.buffers);
    reuse = merge(plan, groups).reuse;
    for (Reuse& pair : reuse) pair = {groups.first[pair.previous], groups.first[pair.next]};
  } else {
    for (const auto& [next, previous] : find_piece_reuse(plan)) {
      reuse.push_back({previous.buffer, next.buffer});
    }
  }
  std::sort(reuse.begin(), reuse.end(), by_next);
  reuse.erase(std::unique(reuse.begin(), reuse.end()), reuse.end());
  return reuse;
}

}  // namespace arenite::plan
