#include "src/plan/instance.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace arenite::plan {
namespace {

void fill_order(const Precedence& order, Instance& instance) {
  const std::size_t n = instance.items.size();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> item(order.size(), none);
  for (std::size_t i = 0; i < n; ++i) item[instance.items[i].buffer] = i;

  const std::size_t words = (n + 63) / 64;
  instance.words = words;
  instance.ordered.assign(n * words, 0);
  const auto mark = [&](std::size_t i, std::size_t j) {
    instance.ordered[i * words + j / 64] |= std::uint64_t{1} << (j % 64);
  };
  const bool timed = std::any_of(instance.items.begin(), instance.items.end(),
                                 [](const Item& i) { return i.end > i.begin; });
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = order.row(instance.items[i].buffer);
    for (std::size_t w = 0; w < row.size(); ++w) {
      for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
        const std::size_t j = item[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
        if (j == none) continue;  // of another space
        mark(i, j);
        mark(j, i);
        if (!timed) ++instance.items[j].begin;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t related = 0;
    for (std::size_t w = 0; w < words; ++w) {
      related += static_cast<std::size_t>(std::popcount(instance.ordered[i * words + w]));
    }
    instance.items[i].extent = static_cast<std::int64_t>(n - related);
  }
}

}  // namespace

std::vector<SpaceInstance> split_by_space(const Problem& problem) {
  std::vector<std::size_t> by_name(problem.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return problem[a].name < problem[b].name; });

  std::map<Space, Instance> spaces;
  for (const std::size_t i : by_name) {
    const Buffer& buffer = problem[i];
    Instance& instance = spaces[buffer.space];
    if (buffer.bytes == 0) continue;
    const bool first = instance.items.empty();
    instance.granule = first ? buffer.alignment : std::min(instance.granule, buffer.alignment);
    instance.items.push_back({.bytes = buffer.bytes,
                              .alignment = buffer.alignment,
                              .begin = buffer.lifetime.begin,
                              .end = buffer.lifetime.end,
                              .fixed = buffer.offset.value_or(-1),
                              .extent = buffer.lifetime.end - buffer.lifetime.begin,
                              .buffer = i});
  }

  std::vector<SpaceInstance> result;
  for (auto& [space, instance] : spaces) {
    if (problem.precedence() != nullptr) fill_order(*problem.precedence(), instance);
    result.push_back({space, std::move(instance)});
  }
  return result;
}

}  // namespace arenite::plan
