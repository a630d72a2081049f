#include "codelets/prepare.hpp"

#include <type_traits>

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t count;
};

template <class T>
void run(const runtime::KernelCall& call) {
  // Integers wrap around instead of overflowing.
  using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                          std::type_identity<T>>::type;
  const std::int64_t count = static_cast<const State*>(call.state)->count;
  T* total = call.inout<T>(0);
  const T* value = call.in<T>(1);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    total[i] = static_cast<T>(static_cast<Sum>(total[i]) + static_cast<Sum>(value[i]));
  }
}

runtime::PreparedKernel choose(const graph::OpView& op) {
  auto state = std::make_shared<const State>(State{op.operand(0).shape.elements()});
  switch (op.operand(0).type) {
    case DType::float64:
      return {run<double>, state};
    case DType::int64:
      return {run<std::int64_t>, state};
    default:
      return {run<float>, state};
  }
}

}  // namespace

std::vector<runtime::Kernel> accumulate_kernels() { return {{.name = "plain", .prepare = choose}}; }

}  // namespace arenite::codelets
