#include "codelets/cuda/kernel.hpp"
#include "src/base/element.hpp"

namespace arenite::codelets {
namespace {

/// Terms that one launch adds: their addresses are among its arguments, of which there are 4 KiB.
constexpr std::size_t most_terms = 256;

struct State : cuda::Elements {
  std::size_t terms = 0;
};

template <class T>
struct Terms {
  const T* of[most_terms];
  int count = 0;
};

/// out = before + terms, in their order; `before` may be null. Everything is read before `out`,
/// which may be a term, is written.
template <class T>
void add(const KernelCall& call, const T* before, const Terms<T>& terms, T* out) {
  using Sum = Wrapping<T>;
  cuda::for_each(call, cuda::count_of(call), [=] ARENITE_THREAD(std::int64_t i) {
    Sum sum = static_cast<Sum>(before != nullptr ? before[i] : terms.of[0][i]);
    for (int t = before != nullptr ? 0 : 1; t < terms.count; ++t)
      sum = static_cast<Sum>(sum + static_cast<Sum>(terms.of[t][i]));
    out[i] = static_cast<T>(sum);
  });
}

/// Many terms: sums of the first ones stay in the workspace, and all terms whole, until the end.
template <class T>
void run(const KernelCall& call) {
  const std::size_t count = static_cast<const State*>(call.state)->terms;
  T* const partial = static_cast<T*>(call.workspace);
  for (std::size_t first = 0; first < count; first += most_terms) {
    const std::size_t end = std::min(count, first + most_terms);
    Terms<T> terms{};
    for (std::size_t t = first; t < end; ++t) terms.of[terms.count++] = call.in<T>(t);
    add<T>(call, first == 0 ? nullptr : partial, terms, end == count ? call.out<T>(0) : partial);
  }
}

PreparedKernel choose(const OpView& op) {
  auto state = std::make_shared<State>();
  state->count = op.result(0).shape.elements();
  state->terms = op.operand_count();
  return {with_element(op.result(0).type, [](auto zero) { return &run<decltype(zero)>; }), state};
}

std::int64_t workspace(const OpView& op) {
  const graph::Value& y = op.result(0);
  return op.operand_count() <= most_terms ? 0 : y.shape.elements() * size_of(y.type);
}

}  // namespace

void ARENITE_CUDA_KERNELS(sum)(runtime::KernelTable& kernels) {
  kernels.add("sum", cuda::own(choose, workspace));
}

}  // namespace arenite::codelets
