#include "src/plan/topology.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/bits.hpp"

namespace arenite::plan {

Topology::Topology(const Precedence& given) : order(given.size()) {
  const std::size_t n = given.size();
  successors.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::uint64_t word : given.row(i)) {
      successors[i] += static_cast<std::size_t>(std::popcount(word));
    }
  }
  buffer.resize(n);
  std::iota(buffer.begin(), buffer.end(), std::size_t{0});
  std::stable_sort(buffer.begin(), buffer.end(),
                   [&](std::size_t a, std::size_t b) { return successors[a] > successors[b]; });
  std::vector<std::size_t> rank(n);
  for (std::size_t r = 0; r < n; ++r) rank[buffer[r]] = r;

  for (std::size_t r = 0; r < n; ++r) {
    visit_bits(given.row(buffer[r]), [&](std::size_t i) { order.set_before(r, rank[i]); });
  }
}

}  // namespace arenite::plan
