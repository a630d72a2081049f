#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/draw/draw.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t elements = 0, samples = 0, order = 0, count = 0, begin = 0;
  double scale = 1;
};

State state_of(const OpView& op) {
  return {.elements = cuda::row_elements(op.result(0).shape),
          .samples = op.operand(0).shape[0],
          .order = op.operand(1).shape[0],
          .count = op.integer("count"),
          .begin = op.integer("begin"),
          .scale = op.real("scale")};
}

/// The row of sample j: -1 where there is none, -2 where the batch reaches beyond the order.
ARENITE_GPU std::int64_t row_of(const State& s, const std::int32_t* order, std::int64_t cursor,
                                std::int64_t j) {
  // Written so that no cursor can overflow the sum.
  if (cursor < 0 || cursor > s.order - s.begin - s.count) return -2;
  const std::int64_t row = order[cursor + s.begin + j];
  return row >= 0 && row < s.samples ? row : -1;
}

template <class From, class To>
void run(const KernelCall& call, const State& s) {
  const auto* data = call.in<From>(0);
  const auto* order = call.in<std::int32_t>(1);
  const auto* cursor = call.in<std::int64_t>(2);
  To* y = call.out<To>(0);
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  const auto scale = static_cast<To>(s.scale);
  // One without elements has a thread, too, that looks at the order.
  const std::int64_t threads = std::max<std::int64_t>(1, s.elements);
  cuda::for_each(call, s.count * threads, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t j = i / threads, element = i % threads;
    const std::int64_t row = row_of(s, order, *cursor, j);
    const auto report = [&](DrawFault fault) {
      cuda::report(status, op, static_cast<std::uint32_t>(fault));
    };
    if (row < 0 && element == 0) report(row == -2 ? DrawFault::cursor : DrawFault::index);
    if (s.elements == 0) return;
    if (row < 0) {
      y[i] = 0;
      return;
    }
    bool held = true;
    y[i] = drawn(data[row * s.elements + element], scale, held);
    if (!held) report(DrawFault::value);
  });
}

PreparedKernel prepare_draw(const OpView& op) {
  return prepared_by_types(op, [&](auto from, auto to) {
    return prepare<state_of, run<decltype(from), decltype(to)>>(op);
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(draw)(runtime::KernelTable& kernels) {
  kernels.add("draw", cuda::own(prepare_draw));
}

}  // namespace arenite::codelets
