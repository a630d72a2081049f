#include "src/plan/alias.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace arenite::plan {

bool has_aliases(const std::vector<Buffer>& buffers) noexcept {
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const Buffer& buffer) { return !buffer.alias.empty(); });
}

AliasGroups::AliasGroups(const std::vector<Buffer>& buffers) {
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::size_t g = members.size();
    if (!buffers[i].alias.empty()) g = known.try_emplace(buffers[i].alias, g).first->second;
    if (g == members.size()) {
      members.emplace_back();
      first.push_back(i);
    }
    members[g].push_back(i);
    if (buffers[i].name < buffers[first[g]].name) first[g] = i;
  }
}

Buffer AliasGroups::merged(const std::vector<Buffer>& buffers, std::size_t g) const {
  Buffer whole = buffers[first[g]];
  for (const std::size_t i : members[g]) {
    const Buffer& part = buffers[i];
    whole.bytes = std::max(whole.bytes, part.bytes);
    whole.alignment = std::max(whole.alignment, part.alignment);
    whole.lifetime.begin = std::min(whole.lifetime.begin, part.lifetime.begin);
    whole.lifetime.end = std::max(whole.lifetime.end, part.lifetime.end);
    if (part.offset) whole.offset = part.offset;
  }
  whole.alias.clear();
  if (members[g].size() > 1) whole.gaps.clear();
  return whole;
}

Problem merge(const Problem& problem, const AliasGroups& groups) {
  Problem result;
  result.set_granule(problem.granule());
  for (std::size_t g = 0; g < groups.members.size(); ++g) {
    result.add(groups.merged(problem.buffers(), g));
  }
  if (problem.precedence() == nullptr) return result;
  // By piece of the result, the pieces behind it: of a group of several, all of theirs.
  std::vector<std::vector<std::size_t>> parts(result.piece_count());
  for (std::size_t g = 0; g < groups.members.size(); ++g) {
    for (const std::size_t i : groups.members[g]) {
      for (std::size_t p = problem.first_piece(i); p <= problem.last_piece(i); ++p) {
        const bool alone = groups.members[g].size() == 1;
        parts[result.first_piece(g) + (alone ? p - problem.first_piece(i) : 0)].push_back(p);
      }
    }
  }
  const auto all_before = [&](std::size_t g, std::size_t h) {
    for (const std::size_t p : parts[g]) {
      for (const std::size_t q : parts[h]) {
        if (!problem.precedence()->before(p, q)) return false;
      }
    }
    return true;
  };
  Precedence order(parts.size());
  for (std::size_t g = 0; g < parts.size(); ++g) {
    for (std::size_t h = 0; h < parts.size(); ++h) {
      if (g != h && all_before(g, h)) order.set_before(g, h);
    }
  }
  result.set_precedence(std::move(order));
  return result;
}

Plan merge(const Plan& plan, const AliasGroups& groups) {
  Plan result = plan;
  result.buffers.clear();
  result.offsets.clear();
  for (std::size_t g = 0; g < groups.members.size(); ++g) {
    result.buffers.push_back(groups.merged(plan.buffers, g));
    result.offsets.push_back(plan.offsets[groups.first[g]]);
  }
  result.reuse = find_reuse(result);
  return result;
}

}  // namespace arenite::plan
