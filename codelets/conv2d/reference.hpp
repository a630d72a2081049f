// Plain loops in double that every convolution kernel is compared with.
#pragma once

#include "codelets/testing.hpp"

namespace arenite::codelets::testing::convolution {

using Values = std::vector<double>;

struct Case {
  std::int64_t n, h, w, c, k, kh, kw;
  std::int64_t sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;
  int x_halo = 0, y_halo = 0;
  bool bias = true;

  std::int64_t oh() const { return (h + 2 * ph - (kh - 1) * dh - 1) / sh + 1; }
  std::int64_t ow() const { return (w + 2 * pw - (kw - 1) * dw - 1) / sw + 1; }
  bool valid() const { return h + 2 * ph > (kh - 1) * dh && w + 2 * pw > (kw - 1) * dw; }
  Shape x() const { return {n, h, w, c}; }
  Shape weight() const { return {kh, kw, c, k}; }
  Shape y() const { return {n, oh(), ow(), k}; }

  graph::Attributes attributes() const {
    return {{"stride", std::vector{sh, sw}},
            {"padding", std::vector{ph, pw}},
            {"dilation", std::vector{dh, dw}}};
  }

  std::string text() const {
    std::string all = to_string(x()) + " * " + to_string(weight());
    const graph::Attributes listed = attributes();
    for (const auto& [name, value] : listed.items()) {
      all += " " + name + "=" + graph::to_string(value);
    }
    return all + " halos " + std::to_string(x_halo) + "," + std::to_string(y_halo);
  }

  /// Calls f(index in x, in weight, in y) for every product of the convolution.
  template <class F>
  void each(F f) const {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t oy = 0; oy < oh(); ++oy) {
        for (std::int64_t ox = 0; ox < ow(); ++ox) {
          for (std::int64_t a = 0; a < kh; ++a) {
            for (std::int64_t b = 0; b < kw; ++b) {
              const std::int64_t iy = oy * sh - ph + a * dh, ix = ox * sw - pw + b * dw;
              if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
              for (std::int64_t p = 0; p < c; ++p) {
                for (std::int64_t q = 0; q < k; ++q) {
                  f(((i * h + iy) * w + ix) * c + p, ((a * kw + b) * c + p) * k + q,
                    ((i * oh() + oy) * ow() + ox) * k + q);
                }
              }
            }
          }
        }
      }
    }
  }
};

template <class T>
Values forward(const Case& t, const std::vector<T>& x, const std::vector<T>& weight,
               const std::vector<T>& bias) {
  Values y(static_cast<std::size_t>(t.y().elements()), 0.0);
  for (std::size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] = bias[i % bias.size()];
  t.each([&](auto xi, auto wi, auto yi) { y[yi] += double{x[xi]} * double{weight[wi]}; });
  return y;
}

template <class T>
Values grad_input(const Case& t, const std::vector<T>& gradient, const std::vector<T>& weight) {
  Values dx(static_cast<std::size_t>(t.x().elements()), 0.0);
  t.each([&](auto xi, auto wi, auto yi) { dx[xi] += double{gradient[yi]} * double{weight[wi]}; });
  return dx;
}

template <class T>
Values grad_weight(const Case& t, const std::vector<T>& x, const std::vector<T>& gradient) {
  Values dw(static_cast<std::size_t>(t.weight().elements()), 0.0);
  t.each([&](auto xi, auto wi, auto yi) { dw[wi] += double{x[xi]} * double{gradient[yi]}; });
  return dw;
}

/// How often each kernel ran.
using Runs = std::map<std::string, std::size_t>;

/// Runs every kernel of the op and compares its result.
inline void check_kernels(OpHarness& harness, ValueId result, const Values& expected,
                          const std::string& what, Runs& runs) {
  const std::vector<std::string> names = harness.cpu_kernels();
  EXPECT_EQ(names.back(), "plain");
  for (const std::string& name : names) {
    EXPECT_EQ(harness.run(name), runtime::StatusWord::ok);
    expect_close(harness.read<float>(result), expected, 1e-5, name + " " + what);
    EXPECT_TRUE(harness.halo_is_zero(result)) << name << " " << what;
    ++runs[name];
  }
}

/// Each of these checks all kernels on one shape, with halos and a bias as the case has them.
inline void check_forward(const Case& t, Runs& runs, bool relu = false) {
  OpHarness harness;
  std::vector<ValueId> operands{harness.random("x", t.x(), -1, 1, t.x_halo),
                                harness.random("w", t.weight())};
  if (t.bias) operands.push_back(harness.random("b", {t.k}));
  const ValueId y = harness.op(relu ? "conv2d_relu" : "conv2d", operands, t.attributes()).front();
  ASSERT_EQ(harness.graph()[y].shape, t.y());
  harness.set_halo(y, t.y_halo);
  const auto bias = t.bias ? harness.read<float>(operands[2]) : std::vector<float>{};
  Values expected =
      forward(t, harness.read<float>(operands[0]), harness.read<float>(operands[1]), bias);
  if (relu) zero_where_dead(expected, expected);
  check_kernels(harness, y, expected, t.text(), runs);
}

inline void check_grad_input(const Case& t, Runs& runs, bool behind_relu = false) {
  OpHarness harness;
  const ValueId g = harness.random("g", t.y(), -1, 1, t.y_halo),
                w = harness.random("w", t.weight());
  graph::Attributes attributes = t.attributes();
  attributes.set("size", std::vector{t.h, t.w});
  std::vector<ValueId> operands{g, w};
  if (behind_relu) operands.push_back(harness.rectified("output", t.x(), t.y_halo));
  const ValueId dx =
      harness.op(behind_relu ? "conv2d_grad_input_relu" : "conv2d_grad_input", operands, attributes)
          .front();
  ASSERT_EQ(harness.graph()[dx].shape, t.x());
  harness.set_halo(dx, t.x_halo);
  Values expected = grad_input(t, harness.read<float>(g), harness.read<float>(w));
  if (behind_relu) zero_where_dead(harness.read<float>(operands[2]), expected);
  check_kernels(harness, dx, expected, t.text(), runs);
}

}  // namespace arenite::codelets::testing::convolution
