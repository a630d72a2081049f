#include "codelets/draw/draw.hpp"
#include "codelets/image.hpp"

#include <algorithm>
#include <optional>

namespace arenite::codelets {
namespace {

struct State {
  std::optional<Image> halo;  ///< of results that have one
  std::int64_t samples = 0, order = 0, count = 0, begin = 0;
  std::int64_t elements = 0;  ///< of a sample
  double scale = 1;
};

constexpr std::int64_t chunk = 16;

/// Elements that touch. Returns whether the type holds all of them.
template <class From, class To>
bool write(const From* in, std::int64_t length, To scale, To* out) {
  const auto some = [=](std::int64_t from, std::int64_t count) {
    bool held = true;
#pragma omp simd reduction(&& : held)
    for (std::int64_t i = from; i < from + count; ++i) out[i] = drawn(in[i], scale, held);
    return held;
  };
  // Short ones in whole chunks, the last of which overlaps the one before: what compilers make of a
  // loop's last iterations would be most of them.
  if (length < chunk || length > 8 * chunk) return some(0, length);
  bool held = some(length - chunk, chunk);
  for (std::int64_t at = 0; at + chunk <= length; at += chunk) held = some(at, chunk) && held;
  return held;
}

/// The order is random: the processor cannot guess where the next sample lies.
template <class T>
void prefetch(const T* sample, std::int64_t elements) {
  constexpr std::int64_t line = 64, most = 4096;
  const auto* bytes = reinterpret_cast<const char*>(sample);
  const std::int64_t end = std::min(elements * static_cast<std::int64_t>(sizeof(T)), most);
  for (std::int64_t at = 0; at < end; at += line) __builtin_prefetch(bytes + at);
}

template <class From, class To>
void run(const KernelCall& call, const State& state) {
  const From* data = call.in<From>(0);
  const std::int64_t cursor = *call.in<std::int64_t>(2);
  To* y = call.out<To>(0);
  const auto report = [&](DrawFault fault) {
    call.status->report(call.op, static_cast<std::uint32_t>(fault));
  };
  // Written so that no cursor can overflow the sum.
  const bool in_order = cursor >= 0 && cursor <= state.order - state.begin - state.count;
  if (!in_order) report(DrawFault::cursor);
  // Its number, or -1.
  const auto sample = [&](std::int64_t j) -> std::int64_t {
    if (!in_order || j >= state.count) return -1;
    const std::int64_t i = call.in<std::int32_t>(1)[cursor + state.begin + j];
    return i >= 0 && i < state.samples ? i : -1;
  };
  // Rows of a sample without a halo touch.
  const std::int64_t rows = state.halo ? state.halo->h : 1,
                     length = state.elements / std::max<std::int64_t>(rows, 1);
  bool held = true;
  for (std::int64_t j = 0; j < state.count; ++j) {
    const std::int64_t chosen = sample(j), next = sample(j + 1);
    if (in_order && chosen < 0) report(DrawFault::index);
    if (next >= 0) prefetch(data + next * state.elements, state.elements);
    for (std::int64_t row = 0; row < rows; ++row) {
      To* out = y + (state.halo ? state.halo->at(j, row, 0) : j * state.elements);
      if (chosen >= 0) {
        held = write(data + chosen * state.elements + row * length, length,
                     static_cast<To>(state.scale), out) &&
               held;
      } else {
        std::fill_n(out, length, To{0});
      }
    }
  }
  if (!held) report(DrawFault::value);
  if (state.halo) zero_halo(y, *state.halo);
}

State state_of(const OpView& op) {
  const graph::Value& y = op.result(0);
  return {.halo = y.layout.halo > 0 ? std::optional(Image(y)) : std::nullopt,
          .samples = op.operand(0).shape[0],
          .order = op.operand(1).shape[0],
          .count = op.integer("count"),
          .begin = op.integer("begin"),
          .elements = y.shape.elements() / y.shape[0],
          .scale = op.real("scale")};
}

PreparedKernel prepare_draw(const OpView& op) {
  return prepared_by_types(op, [&](auto from, auto to) {
    return prepare<state_of, run<decltype(from), decltype(to)>>(op);
  });
}

}  // namespace

std::vector<Kernel> draw_kernels() {
  return {{.name = "plain", .prepare = prepare_draw, .writes_halo = true}};
}

}  // namespace arenite::codelets
