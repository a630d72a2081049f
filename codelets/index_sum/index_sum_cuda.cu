#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

struct State {
  bool two = false;  ///< b is there
  std::uint64_t scale = 1, offset = 0;
};

State state_of(const OpView& op) {
  return {.two = op.has_operand(1),
          .scale = static_cast<std::uint64_t>(op.integer("scale")),
          .offset = static_cast<std::uint64_t>(op.integer("offset"))};
}

void run(const KernelCall& call, const State& s) {
  // Unsigned: these wrap around where signed ones must not overflow.
  const auto *a = call.in<std::uint64_t>(0), *b = s.two ? call.in<std::uint64_t>(1) : nullptr;
  auto* y = call.out<std::uint64_t>(0);
  cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
    *y = *a + (b != nullptr ? s.scale * *b : 0) + s.offset;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(index_sum)(runtime::KernelTable& kernels) {
  kernels.add("index_sum", cuda::own(prepare<state_of, run>));
}

}  // namespace arenite::codelets
