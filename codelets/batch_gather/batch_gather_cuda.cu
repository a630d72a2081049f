#include "codelets/batch_gather/batch_gather.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t pixels = 0, images = 0, order = 0, count = 0, begin = 0;
  float scale = 1;
};

State state_of(const OpView& op) {
  const Shape& x = op.result(0).shape;
  return {.pixels = x[0] == 0 ? 0 : x.elements() / x[0],
          .images = op.operand(0).shape[0],
          .order = op.operand(2).shape[0],
          .count = op.integer("count"),
          .begin = op.integer("begin"),
          .scale = static_cast<float>(op.real("scale"))};
}

/// The image of sample j: -1 where there is none, -2 where the batch reaches beyond the order.
ARENITE_GPU std::int64_t image_of(const State& s, const std::int32_t* order, std::int64_t cursor,
                                  std::int64_t j) {
  // Written so that no cursor can overflow the sum.
  if (cursor < 0 || cursor > s.order - s.begin - s.count) return -2;
  const std::int64_t image = order[cursor + s.begin + j];
  return image >= 0 && image < s.images ? image : -1;
}

void run(const KernelCall& call, const State& s) {
  const auto *images = call.in<std::uint8_t>(0), *labels = call.in<std::uint8_t>(1);
  const auto* order = call.in<std::int32_t>(2);
  const auto* cursor = call.in<std::int64_t>(3);
  float* x = call.out<float>(0);
  auto* y = call.out<std::int32_t>(1);
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  // An image's first thread sees to its label, too; one without pixels has no other thread.
  const std::int64_t threads = std::max<std::int64_t>(1, s.pixels);
  cuda::for_each(call, s.count * threads, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t j = i / threads, pixel = i % threads;
    const std::int64_t image = image_of(s, order, *cursor, j);
    if (s.pixels > 0) {
      x[i] = image < 0 ? 0 : s.scale * static_cast<float>(images[image * s.pixels + pixel]);
    }
    if (pixel != 0) return;
    y[j] = image >= 0 ? labels[image] : 0;
    if (image >= 0) return;
    cuda::report(
        status, op,
        static_cast<std::uint32_t>(image == -2 ? GatherFault::cursor : GatherFault::index));
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(batch_gather)(runtime::KernelTable& kernels) {
  kernels.add("batch_gather", cuda::own(prepare<state_of, run>));
}

}  // namespace arenite::codelets
