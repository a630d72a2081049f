#include <arenite/error.hpp>
#include <arenite/plan/problem.hpp>

namespace arenite::plan {

Precedence::Precedence(std::size_t size) : size_(size), words_((size + 63) / 64) {
  if (size > max_size) {
    fail({.found = "a partial order of " + std::to_string(size) + " buffers",
          .expected = "at most " + std::to_string(max_size),
          .where = "plan::Precedence",
          .hint = "give lifetimes instead: intervals need no matrix"});
  }
  bits_.resize(size_ * words_);
}

void Precedence::set_before(std::size_t i, std::size_t j) {
  if (i >= size_ || j >= size_) {
    fail({.found = "index " + std::to_string(i >= size_ ? i : j),
          .expected = "an index below " + std::to_string(size_),
          .where = "plan::Precedence::set_before"});
  }
  bits_[i * words_ + j / 64] |= std::uint64_t{1} << (j % 64);
}

// Warshall's algorithm, 64 columns at a time.
void Precedence::close() {
  for (std::size_t via = 0; via < size_; ++via) {
    const std::uint64_t* successors = bits_.data() + via * words_;
    for (std::size_t i = 0; i < size_; ++i) {
      if (i == via || !before(i, via)) continue;
      std::uint64_t* row = bits_.data() + i * words_;
      for (std::size_t w = 0; w < words_; ++w) row[w] |= successors[w];
    }
  }
}

}  // namespace arenite::plan
