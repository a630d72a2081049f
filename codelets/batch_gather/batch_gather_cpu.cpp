#include "codelets/batch_gather/batch_gather.hpp"
#include "codelets/image.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

using Byte = std::uint8_t;

struct State {
  Image x;
  std::int64_t images = 0, order = 0, count = 0, begin = 0;
  float scale = 1;
};

constexpr std::int64_t chunk = 16;

/// Short rows in whole chunks, the last of which overlaps the one before: what compilers make of a
/// loop's last iterations would be most of them.
void write_row(const Byte* in, std::int64_t length, float scale, float* out) {
  const auto write = [=](std::int64_t from, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = from; i < from + count; ++i) out[i] = scale * static_cast<float>(in[i]);
  };
  if (length < chunk || length > 8 * chunk) return write(0, length);
  for (std::int64_t at = 0; at + chunk <= length; at += chunk) write(at, chunk);
  write(length - chunk, chunk);
}

/// One image without a halo into one with the result's. A null image is all zeros.
void write_sample(const Image& to, std::int64_t sample, const Byte* image, float scale, float* x) {
  // Rows that touch are one.
  const std::int64_t rows = to.halo > 0 ? to.h : 1,
                     length = to.h * to.w * to.c / std::max<std::int64_t>(rows, 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* out = x + to.at(sample, row, 0);
    if (image) {
      write_row(image + row * length, length, scale, out);
    } else {
      std::fill_n(out, length, 0.0f);
    }
  }
}

/// The order is random: the processor cannot guess where the next image lies.
void prefetch(const Byte* image, std::int64_t bytes) {
  constexpr std::int64_t line = 64, most = 4096;
  for (std::int64_t at = 0; at < std::min(bytes, most); at += line) __builtin_prefetch(image + at);
}

void run(const KernelCall& call, const State& state) {
  const Byte *images = call.in<Byte>(0), *labels = call.in<Byte>(1);
  const std::int64_t cursor = *call.in<std::int64_t>(3);
  const std::int64_t image_bytes = state.x.h * state.x.w * state.x.c;
  float* x = call.out<float>(0);
  auto* y = call.out<std::int32_t>(1);

  // Written so that no cursor can overflow the sum.
  const bool in_order = cursor >= 0 && cursor <= state.order - state.begin - state.count;
  if (!in_order) call.status->report(call.op, static_cast<std::uint32_t>(GatherFault::cursor));
  const auto index = [&](std::int64_t j) -> std::int64_t {
    return in_order && j < state.count ? call.in<std::int32_t>(2)[cursor + state.begin + j] : -1;
  };
  const auto image = [&](std::int64_t i) {
    return i >= 0 && i < state.images ? images + i * image_bytes : nullptr;
  };
  for (std::int64_t j = 0; j < state.count; ++j) {
    const Byte *from = image(index(j)), *next = image(index(j + 1));
    if (in_order && !from)
      call.status->report(call.op, static_cast<std::uint32_t>(GatherFault::index));
    if (next) prefetch(next, image_bytes);
    write_sample(state.x, j, from, state.scale, x);
    y[j] = from ? labels[index(j)] : 0;
  }
  zero_halo(x, state.x);
}

State state_of(const OpView& op) {
  return {.x = Image(op.result(0)),
          .images = op.operand(0).shape[0],
          .order = op.operand(2).shape[0],
          .count = op.integer("count"),
          .begin = op.integer("begin"),
          .scale = static_cast<float>(op.real("scale"))};
}

}  // namespace

std::vector<Kernel> batch_gather_kernels() {
  return {{.name = "plain", .prepare = prepare<state_of, run>, .writes_halo = true}};
}

}  // namespace arenite::codelets
