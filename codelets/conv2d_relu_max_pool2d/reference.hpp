// What the tests of the fused convolution share: shapes, and its meaning in plain loops in double.
#pragma once

#include "codelets/avx512.hpp"
#include "codelets/pool2d.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing::fused {

using pool2d::dead;
using Values = std::vector<double>;
using Codes = std::vector<std::uint8_t>;
using List = std::vector<std::int64_t>;

struct Case {
  std::int64_t n, h, w, c, k, kh, kw;
  std::int64_t sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;
  std::int64_t qh = 2, qw = 2;  ///< the pooling window
  int x_halo = 0, y_halo = 0, code_halo = 0;
  bool bias = true;

  std::int64_t conv_h() const { return (h + 2 * ph - (kh - 1) * dh - 1) / sh + 1; }
  std::int64_t conv_w() const { return (w + 2 * pw - (kw - 1) * dw - 1) / sw + 1; }
  std::int64_t oh() const { return conv_h() / qh; }
  std::int64_t ow() const { return conv_w() / qw; }
  bool valid() const {
    return h + 2 * ph > (kh - 1) * dh && w + 2 * pw > (kw - 1) * dw && oh() > 0 && ow() > 0;
  }
  Shape x() const { return {n, h, w, c}; }
  Shape weight() const { return {kh, kw, c, k}; }
  Shape y() const { return {n, oh(), ow(), k}; }

  graph::Attributes attributes(const char* extra = nullptr, List value = {}) const {
    graph::Attributes all{{"stride", List{sh, sw}},
                          {"padding", List{ph, pw}},
                          {"dilation", List{dh, dw}},
                          {"pool", List{qh, qw}}};
    if (extra) all.set(extra, std::move(value));
    return all;
  }
  std::string text() const {
    std::string all = to_string(x()) + " * " + to_string(weight());
    const graph::Attributes listed = attributes();
    for (const auto& [name, value] : listed.items()) {
      all += " " + name + "=" + graph::to_string(value);
    }
    return all + " halos " + std::to_string(x_halo) + "," + std::to_string(y_halo) + "," +
           std::to_string(code_halo);
  }

  /// Calls f(index in x, index in weight) for every product of tap `tap` of pooled output `o`.
  template <class F>
  void each_product(std::size_t o, std::int64_t tap, F f) const {
    const auto at = static_cast<std::int64_t>(o);
    const std::int64_t q = at % k, ox = at / k % ow(), oy = at / (k * ow()) % oh(),
                       i = at / (k * ow() * oh());
    const std::int64_t cy = oy * qh + tap / qw, cx = ox * qw + tap % qw;
    for (std::int64_t a = 0; a < kh; ++a) {
      for (std::int64_t b = 0; b < kw; ++b) {
        const std::int64_t iy = cy * sh - ph + a * dh, ix = cx * sw - pw + b * dw;
        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        for (std::int64_t p = 0; p < c; ++p) {
          f(static_cast<std::size_t>(((i * h + iy) * w + ix) * c + p),
            static_cast<std::size_t>(((a * kw + b) * c + p) * k + q));
        }
      }
    }
  }
};

/// The convolution's output at tap `tap` of pooled output o.
template <class T>
double convolved(const Case& t, std::size_t o, std::int64_t tap, const std::vector<T>& x,
                 const std::vector<T>& weight, const std::vector<T>& bias) {
  double sum = bias.empty() ? 0.0 : double{bias[o % bias.size()]};
  t.each_product(o, tap, [&](auto xi, auto wi) { sum += double{x[xi]} * double{weight[wi]}; });
  return sum;
}

struct Pooled {
  Values y;
  Codes code;
};

template <class T>
Pooled forward(const Case& t, const std::vector<T>& x, const std::vector<T>& weight,
               const std::vector<T>& bias) {
  Pooled out;
  for (std::size_t o = 0; o < static_cast<std::size_t>(t.y().elements()); ++o) {
    double best = -std::numeric_limits<double>::infinity();
    std::int64_t winner = 0;
    for (std::int64_t tap = 0; tap < t.qh * t.qw; ++tap) {
      const double value = convolved(t, o, tap, x, weight, bias);
      if (value > best) best = value, winner = tap;
    }
    out.y.push_back(std::max(best, 0.0));
    out.code.push_back(best > 0 ? static_cast<std::uint8_t>(winner) : dead);
  }
  return out;
}

struct Gradients {
  Values x, weight, bias;
};

template <class T>
Gradients backward(const Case& t, const std::vector<T>& x, const std::vector<T>& weight,
                   const std::vector<T>& gradient, const Codes& code) {
  Gradients all{Values(static_cast<std::size_t>(t.x().elements())),
                Values(static_cast<std::size_t>(t.weight().elements())),
                Values(static_cast<std::size_t>(t.k))};
  for (std::size_t o = 0; o < code.size(); ++o) {
    if (code[o] & dead) continue;
    all.bias[o % all.bias.size()] += double{gradient[o]};
    t.each_product(o, code[o], [&](auto xi, auto wi) {
      all.x[xi] += double{gradient[o]} * double{weight[wi]};
      all.weight[wi] += double{gradient[o]} * double{x[xi]};
    });
  }
  return all;
}

/// Shapes that networks use, then odd ones at random.
inline std::vector<Case> cases() {
  std::vector<Case> all{
      {.n = 3, .h = 28, .w = 28, .c = 1, .k = 4, .kh = 3, .kw = 3},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 6, .kh = 5, .kw = 5, .ph = 2, .pw = 2, .x_halo = 2},
      {.n = 2, .h = 14, .w = 14, .c = 6, .k = 16, .kh = 5, .kw = 5},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 3, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .y_halo = 1},
      {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      {.n = 1, .h = 8, .w = 8, .c = 64, .k = 128, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 1, .h = 32, .w = 32, .c = 3, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 2, .h = 12, .w = 20, .c = 16, .k = 32, .kh = 5, .kw = 5, .ph = 2, .pw = 2},
      {.n = 1, .h = 11, .w = 64, .c = 1, .k = 5, .kh = 3, .kw = 3, .pw = 1, .qh = 3, .qw = 3},
      {.n = 1,
       .h = 9,
       .w = 9,
       .c = 4,
       .k = 40,
       .kh = 3,
       .kw = 3,
       .ph = 1,
       .pw = 1,
       .qh = 3,
       .qw = 3},
      {.n = 1, .h = 20, .w = 20, .c = 2, .k = 3, .kh = 16, .kw = 16},
      {.n = 1, .h = 22, .w = 22, .c = 1, .k = 2, .kh = 17, .kw = 17},
      {.n = 2, .h = 12, .w = 12, .c = 1, .k = 2, .kh = 1, .kw = 1, .qh = 11, .qw = 11},
  };
  // Blocks of channels, vectors, rows and lists that do not come out even: every path of the sparse
  // kernels.
  for (const std::int64_t c : {1, 2, 3, 6, 16, 20, 32, 33, 48, 64, 100, 128}) {
    for (const std::int64_t k : {1, 6, 16, 33, 64, 128}) {
      const bool even = (c + k) % 2 == 0;
      Case t{.n = 2, .h = 7, .w = 6, .c = c, .k = k, .kh = 3, .kw = 3, .ph = 1, .pw = 1};
      t.x_halo = even ? 1 : 0;
      t.y_halo = even ? 0 : 1;
      t.code_halo = even ? 1 : 0;
      all.push_back(t);
      if (c * k > 2048) continue;
      t.kh = even ? 5 : 2;
      t.kw = even ? 5 : 7;
      t.ph = t.pw = even ? 2 : 1;
      all.push_back(t);
      t.dh = t.dw = 2;
      t.ph = t.pw = 6;
      t.qh = even ? 1 : 4;
      t.qw = even ? 2 : 4;
      all.push_back(t);
    }
  }
  // Few channels: windows that share a vector, and rows of them that do not fill the last one.
  for (const std::int64_t c : {1, 2, 3}) {
    for (const std::int64_t k : {1, 2, 4, 5, 6, 8, 11, 16, 20}) {
      for (const std::int64_t size : {3, 5}) {
        const bool even = (c + k) % 2 == 0;
        Case t{.n = 2, .h = 14, .w = 14 + k, .c = c, .k = k, .kh = size, .kw = size};
        t.ph = t.pw = even ? size / 2 : 0;
        t.x_halo = k % 4 == 0 ? 2 : 0;
        t.y_halo = even ? 0 : 1;
        all.push_back(t);
        t.qh = t.qw = 3;
        t.pw = 1;
        all.push_back(t);
      }
    }
  }
  // Windows of 3x3 over more channels.
  for (const std::int64_t c : {6, 16, 20, 32}) {
    for (const std::int64_t size : {2, 3, 5, 7}) {
      Case t{.n = 2, .h = 13, .w = 14, .c = c, .k = 8 + 3 * size, .kh = size, .kw = size};
      t.ph = t.pw = size / 2;
      t.qh = t.qw = 3;
      all.push_back(t);
    }
  }
  all.push_back({.n = 70, .h = 4, .w = 4, .c = 8, .k = 20, .kh = 3, .kw = 3});
  all.push_back({.n = 2, .h = 50, .w = 44, .c = 2, .k = 3, .kh = 7, .kw = 6, .pw = 1});
  all.push_back({.n = 1, .h = 8, .w = 200, .c = 40, .k = 5, .kh = 3, .kw = 3, .ph = 1, .pw = 1});
  all.push_back({.n = 1, .h = 20, .w = 5, .c = 5, .k = 4, .kh = 13, .kw = 1, .sh = 2});
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  const std::size_t total = all.size() + 185;
  while (all.size() < total) {
    Case t{.n = pick({1, 2, 3}),
           .h = pick({2, 3, 5, 7, 8, 11, 12}),
           .w = pick({2, 4, 6, 7, 9, 12, 20}),
           .c = pick({1, 1, 2, 3, 4, 6, 16, 20, 32, 48}),
           .k = pick({1, 3, 4, 6, 8, 16, 17, 20, 32, 64}),
           .kh = pick({1, 2, 3, 3, 5, 5}),
           .kw = pick({1, 3, 3, 4, 5}),
           .sh = pick({1, 1, 1, 2, 3}),
           .sw = pick({1, 1, 1, 2, 3}),
           .ph = pick({0, 0, 1, 2, 3}),
           .pw = pick({0, 0, 1, 2}),
           .dh = pick({1, 1, 1, 2}),
           .dw = pick({1, 1, 1, 3}),
           .qh = pick({1, 2, 2, 2, 3}),
           .qw = pick({1, 2, 2, 2, 3}),
           .x_halo = static_cast<int>(pick({0, 1, 2, 3})),
           .y_halo = static_cast<int>(pick({0, 0, 1, 2})),
           .code_halo = static_cast<int>(pick({0, 0, 1})),
           .bias = pick({0, 1, 1}) == 1};
    if (random() % 2 == 0) {  // what fast kernels are made for
      t.sh = t.sw = t.dh = t.dw = 1;
      t.kh = t.kw = pick({3, 5});
      t.ph = t.pw = pick({0, t.kh / 2});
      t.qh = t.qw = 2;
    }
    if (t.valid()) all.push_back(t);
  }
  return all;
}

/// How many shapes each kernel ran on.
using Runs = std::map<std::string, std::size_t>;

/// The plain kernel ran on `all` shapes, and each of `avx512` on more than a few in builds that
/// have them.
inline void expect_runs(const Runs& runs, const std::vector<std::string>& avx512, std::size_t all) {
  const auto of = [&](const std::string& name) { return runs.contains(name) ? runs.at(name) : 0; };
  EXPECT_EQ(of("plain"), all);
  for (const std::string& name : avx512) {
    if (built_with_avx512()) {
      EXPECT_GT(of(name), 5u) << name;
    } else {
      EXPECT_EQ(of(name), 0u) << name;
    }
  }
}

}  // namespace arenite::codelets::testing::fused
