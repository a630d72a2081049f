#include "src/base/nearest.hpp"

#include <algorithm>
#include <vector>

namespace arenite {
namespace {

/// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

// A hint further away than three edits, or with no character of the name, would be noise.
Nearest::Nearest(std::string_view name)
    : name_(name), edits_(std::min<std::size_t>(4, name.size())) {}

void Nearest::consider(std::string_view candidate) {
  const std::size_t longer = std::max(name_.size(), candidate.size());
  const std::size_t shorter = std::min(name_.size(), candidate.size());
  if (longer - shorter >= edits_) return;  // no nearer than that, and the name may be a megabyte
  const std::size_t edits = distance(name_, candidate);
  const bool is_same_word = std::ranges::equal(name_, candidate, {}, lower_case, lower_case);
  if (is_same_word_ || (edits >= edits_ && !is_same_word)) return;
  edits_ = edits;
  is_same_word_ = is_same_word;
  found_ = candidate;
}

std::string Nearest::hint(std::string otherwise) const {
  return found_.empty() ? otherwise : "did you mean '" + found_ + "'?";
}

}  // namespace arenite
