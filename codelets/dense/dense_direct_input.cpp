// The gradient of a dense layer's input on few samples. Weights lie with the outputs side by side,
// which is what the sums go over: a vector's lanes of sums at a time, of 4 samples × a quarter of
// so many inputs, 2 × half or 1 × all, are added up across lanes at their end.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codelets/dense/dense_direct_input.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/simd-inl.hpp"
#include "codelets/simd.hpp"
#include "codelets/words.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace arenite::codelets::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

/// Of four vectors, in each block of 128 bits: lane l is the sum of that block of vector l.
HWY_INLINE Vector sums_of_blocks(const Vector* v) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  const auto added = [&](Vector a, Vector b) HWY_ATTR __attribute__((always_inline)) {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto low = added(v[0], v[1]), high = added(v[2], v[3]);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
}

/// Lane l of the result is the sum of all lanes of vector l.
HWY_INLINE Vector sums_of(const Vector (&v)[lanes]) {
  constexpr std::int64_t blocks = lanes / 4;
  Vector block[blocks];
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < blocks; ++i) block[i] = sums_of_blocks(v + 4 * i);
  const auto neighbours = [](Vector x) HWY_ATTR __attribute__((always_inline)) {
    return hn::Add(x, hn::SwapAdjacentBlocks(x));
  };
  if constexpr (blocks == 1) {
    return block[0];
  } else if constexpr (blocks == 2) {
    return hn::OddEvenBlocks(neighbours(block[1]), neighbours(block[0]));
  } else {
    const auto all = [&](Vector a, Vector b) HWY_ATTR __attribute__((always_inline)) {
      return hn::Add(neighbours(hn::ConcatLowerLower(Floats(), b, a)),
                     neighbours(hn::ConcatUpperUpper(Floats(), b, a)));
    };
    return hn::OddEvenBlocks(all(block[1], block[3]), all(block[0], block[2]));
  }
}

/// What all tiles of a call share.
struct Call {
  const DenseGradInput& layer;
  const float *gradient, *weight, *output;
  float* dx;

  Call(const KernelCall& call, const DenseGradInput& sizes)
      : layer(sizes),
        gradient(call.in<float>(0)),
        weight(call.in<float>(1)),
        output(layer.masked ? call.in<float>(2) : nullptr),
        dx(call.out<float>(0)) {}

  /// Some inputs' gradients of one sample, by what the ReLU let through; it passes on NaN.
  void store(std::int64_t at, Vector values, Mask some) const {
    if (output) values = relu_grad(hn::MaskedLoad(some, Floats(), output + at), values);
    hn::BlendedStore(values, some, Floats(), dx + at);
  }

  /// Samples from n on times inputs from i on, of which there are `count`.
  template <int samples>
  void tile(std::int64_t n, std::int64_t i, std::int64_t count) const {
    constexpr int inputs = lanes / samples;
    const std::int64_t outputs = layer.o;
    // Inputs that are not there are the last one again.
    const float* rows[inputs];
#pragma GCC unroll 16
    for (int k = 0; k < inputs; ++k)
      rows[k] = weight + (i + std::min<std::int64_t>(k, count - 1)) * outputs;
    Vector sums[lanes];
#pragma GCC unroll 16
    for (int t = 0; t < lanes; ++t) sums[t] = hn::Zero(Floats());
    const auto add = [&](std::int64_t o, auto loaded) HWY_ATTR __attribute__((always_inline)) {
      Vector g[samples];
#pragma GCC unroll 4
      for (int s = 0; s < samples; ++s) g[s] = loaded(gradient + (n + s) * outputs + o);
#pragma GCC unroll 16
      for (int k = 0; k < inputs; ++k) {
        const Vector w = loaded(rows[k] + o);
        // The next inputs' weights: another core may have written them.
        __builtin_prefetch(rows[k] + lanes * outputs + o, 0, 3);
#pragma GCC unroll 4
        for (int s = 0; s < samples; ++s)
          sums[s * inputs + k] = hn::MulAdd(g[s], w, sums[s * inputs + k]);
      }
    };
    const auto whole = [](const float* from) HWY_ATTR __attribute__((always_inline)) {
      return hn::LoadU(Floats(), from);
    };
    std::int64_t o = 0;
    for (; o + lanes <= outputs; o += lanes) add(o, whole);
    if (o < outputs) {
      const Mask rest = first_lanes(outputs - o);
      add(
          o, [rest](const float* from) HWY_ATTR
          __attribute__((always_inline)) { return hn::MaskedLoad(rest, Floats(), from); });
    }
    const Vector all = sums_of(sums);
    const Mask some = first_lanes(std::min<std::int64_t>(count, inputs));
    if constexpr (samples == 1) return store(n * layer.i + i, all, some);
    HWY_ALIGN float made[2 * lanes];
    hn::Store(all, Floats(), made);
    hn::Store(all, Floats(), made + lanes);
    for (int s = 0; s < samples; ++s)
      store((n + s) * layer.i + i, hn::LoadU(Floats(), made + s * inputs), some);
  }

  template <int samples>
  void tiles(std::int64_t n, std::int64_t i, std::int64_t end) const {
    constexpr int inputs = lanes / samples;
    for (; i < end; i += inputs) tile<samples>(n, i, end - i);
  }
};

void run(const KernelCall& arguments, const DenseGradInput& layer) {
  const Call call(arguments, layer);
  const std::int64_t samples = layer.n, inputs = layer.i;
  for (std::int64_t i = 0; i < inputs; i += lanes) {
    const std::int64_t end = std::min(i + lanes, inputs);
    std::int64_t n = 0;
    for (; n + 4 <= samples; n += 4) call.tiles<4>(n, i, end);
    for (; n + 2 <= samples; n += 2) call.tiles<2>(n, i, end);
    if (n < samples) call.tiles<1>(n, i, end);
  }
}

/// Sums across lanes pay where many outputs go before them, and the less the more samples share
/// LIBXSMM's transposed weights (bench/NOTES.md).
graph::Support supports(const OpView& op) {
  const DenseGradInput layer(op);
  if (layer.n > 16) return "more than 16 samples";
  if (layer.o < 96) return "fewer than 96 outputs to sum over";
  if (layer.n > 12 && layer.o < 192)
    return "fewer than 192 outputs to sum over, for over 12 samples";
  return {};
}

#endif

}  // namespace

Kernel make_dense_direct_grad_input() {
#if HWY_TARGET == HWY_SCALAR
  return without_vectors("direct");
#else
  return {.name = "direct", .supports = supports, .prepare = prepare<made_of<DenseGradInput>, run>};
#endif
}

}  // namespace arenite::codelets::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::codelets {
ARENITE_DISPATCHED(dense_direct_grad_input)
}  // namespace arenite::codelets
#endif
