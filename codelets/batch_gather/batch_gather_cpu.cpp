#include "codelets/batch_gather/batch_gather.hpp"
#include "codelets/image.hpp"

namespace arenite::codelets {
namespace {

using Byte = std::uint8_t;

struct State {
  Image x;
  std::int64_t images = 0, order = 0, count = 0, begin = 0;
  float scale = 1;
};

/// One image without a halo into one with the result's. A null image is all zeros.
void write_sample(const Image& to, std::int64_t sample, const Byte* image, float scale, float* x) {
  // Rows that touch are one.
  const std::int64_t rows = to.halo > 0 ? to.h : 1,
                     length = to.h * to.w * to.c / std::max<std::int64_t>(rows, 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* out = x + to.at(sample, row, 0);
    if (!image) {
      std::fill_n(out, length, 0.0f);
      continue;
    }
    const Byte* in = image + row * length;
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) out[i] = scale * static_cast<float>(in[i]);
  }
}

void run(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const Byte *images = call.in<Byte>(0), *labels = call.in<Byte>(1);
  const std::int64_t cursor = *call.in<std::int64_t>(3);
  const std::int64_t image_bytes = state.x.h * state.x.w * state.x.c;
  float* x = call.out<float>(0);
  auto* y = call.out<std::int32_t>(1);

  // Written so that no cursor can overflow the sum.
  const bool in_order = cursor >= 0 && cursor <= state.order - state.begin - state.count;
  if (!in_order) call.status->report(call.op, static_cast<std::uint32_t>(GatherFault::cursor));
  for (std::int64_t j = 0; j < state.count; ++j) {
    const std::int64_t index = in_order ? call.in<std::int32_t>(2)[cursor + state.begin + j] : -1;
    const bool known = index >= 0 && index < state.images;
    if (in_order && !known)
      call.status->report(call.op, static_cast<std::uint32_t>(GatherFault::index));
    write_sample(state.x, j, known ? images + index * image_bytes : nullptr, state.scale, x);
    y[j] = known ? labels[index] : 0;
  }
  zero_halo(x, state.x);
}

runtime::PreparedKernel prepare(const graph::OpView& op) {
  return {run, std::make_shared<const State>(State{.x = Image(op.result(0)),
                                                   .images = op.operand(0).shape[0],
                                                   .order = op.operand(2).shape[0],
                                                   .count = op.integer("count"),
                                                   .begin = op.integer("begin"),
                                                   .scale = static_cast<float>(op.real("scale"))})};
}

}  // namespace

std::vector<runtime::Kernel> batch_gather_kernels() {
  return {{.name = "plain", .prepare = prepare, .writes_halo = true}};
}

}  // namespace arenite::codelets
