#include "codelets/cuda/sums.hpp"
#include "codelets/sgd/sgd.hpp"
#include "codelets/sgd/step_one.hpp"

namespace arenite::codelets {
namespace {

/// So many updates of a `multi_sgd` are one grid; their addresses are its arguments.
constexpr std::size_t most_at_once = 32;

struct Grid {
  struct Item {
    std::int64_t first;  ///< element of the grid
    std::int64_t count, rows;
    sgd::States states;
    const float* gradient;

    /// Of one element; in double where rows are added, as everywhere.
    ARENITE_GPU float gradient_of(std::int64_t element) const {
      if (rows == 1) return gradient[element];
      return static_cast<float>(cuda::sum_ahead(
          0, rows, 1, [&](std::int64_t row) { return gradient[row * count + element]; }));
    }
  };
  Item items[most_at_once];
  std::size_t count = 0;
  std::int64_t elements = 0;

  void add(const Item& item) {
    items[count++] = item;
    elements += item.count;
  }

  ARENITE_GPU const Item& of(std::int64_t element) const {
    std::size_t i = 0;
    while (i + 1 < count && items[i + 1].first <= element) ++i;
    return items[i];
  }
};

void run_multi(const KernelCall& call, const sgd::Updates& updates) {
  using sgd::Updates;
  const sgd::Rule rule = updates.rule;
  const float* rate = call.in<float>(0);
  for (std::size_t begin = 0; begin < updates.items.size(); begin += most_at_once) {
    const std::size_t end = std::min(begin + most_at_once, updates.items.size());
    Grid grid;
    for (std::size_t i = begin; i < end; ++i) {
      grid.add({.first = grid.elements,
                .count = updates.items[i].count,
                .rows = updates.items[i].rows,
                .states = sgd::States(
                    call, {.weight = Updates::weight(i), .velocity = Updates::velocity(i)},
                    updates.has_velocity, updates.renewed(i)),
                .gradient = call.in<float>(Updates::gradient(i))});
    }
    cuda::for_each(call, grid.elements, [=] ARENITE_THREAD(std::int64_t i) {
      const Grid::Item& item = grid.of(i);
      const std::int64_t element = i - item.first;
      item.states.step(rule, *rate, item.gradient_of(element), element);
    });
  }
}

}  // namespace

void ARENITE_CUDA_KERNELS(sgd)(runtime::KernelTable& kernels) {
  kernels.add("multi_sgd", cuda::own(prepare<made_of<sgd::Updates>, run_multi>));
}

}  // namespace arenite::codelets
