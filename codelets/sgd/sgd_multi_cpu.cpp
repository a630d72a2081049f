#include "codelets/sgd/sgd.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <array>

namespace arenite::codelets {
namespace {

using sgd::Updates;

struct State : Updates {
  sgd::Step step;

  explicit State(const OpView& op) : Updates(op), step(op, has_velocity) {}
};

/// Columns whose rows are summed at a time.
constexpr std::int64_t block = 64;

void sum_rows(const float* gradient, const Updates::Item& item, std::int64_t from,
              std::int64_t count, float* sums) {
  std::array<double, block> totals{};
  for (std::int64_t row = 0; row < item.rows; ++row) {
    const float* terms = gradient + row * item.count + from;
    for (std::int64_t i = 0; i < count; ++i)
      totals[static_cast<std::size_t>(i)] += static_cast<double>(terms[i]);
  }
  std::copy_n(totals.begin(), count, sums);
}

void run(const KernelCall& call, const State& updates) {
  const float rate = *call.in<float>(0);
  for (std::size_t i = 0; i < updates.items.size(); ++i) {
    const Updates::Item& item = updates.items[i];
    const std::size_t made = updates.renewed(i);
    float* weight = call.renewed<float>(made, Updates::weight(i), item.count);
    const float* gradient = call.in<float>(Updates::gradient(i));
    float* velocity = updates.has_velocity
                          ? call.renewed<float>(made + 1, Updates::velocity(i), item.count)
                          : nullptr;
    if (item.rows == 1) {
      updates.step(rate, gradient, weight, velocity, item.count);
      continue;
    }
    for (std::int64_t from = 0; from < item.count; from += block) {
      std::array<float, block> sums;
      const std::int64_t count = std::min(block, item.count - from);
      sum_rows(gradient, item, from, count, sums.data());
      updates.step(rate, sums.data(), weight + from,
                   velocity != nullptr ? velocity + from : nullptr, count);
    }
  }
}

}  // namespace

std::vector<Kernel> multi_sgd_kernels() {
  return {{.name = "plain", .prepare = prepare<made_of<State>, run>}};
}

}  // namespace arenite::codelets
