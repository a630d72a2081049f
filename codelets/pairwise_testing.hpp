// What the tests of add and mul share. For tests only.
#pragma once

#include "codelets/broadcast_testing.hpp"

namespace arenite::codelets::testing {

/// An operator, what it does to two numbers, and the slopes of that.
struct Pairwise {
  std::string op;
  double (*value)(double a, double b);
  double (*slope_a)(double a, double b);
  double (*slope_b)(double a, double b);
};

struct PairwiseHalos {
  int a = 0, b = 0, y = 0;
};

/// Runs it, forward and backward, for one type.
template <class T>
void check_pairwise(OpHarness& h, const Pairwise& of, const Pattern& p, PairwiseHalos halos,
                    bool in_place, double tolerance) {
  SCOPED_TRACE(to_string(p.whole) + " and " + to_string(p.part) + (in_place ? " in place" : ""));
  const auto a = random_value<T>(h, p.whole, halos.a), b = random_value<T>(h, p.part, halos.b);
  const auto left = as_doubles(h.read<T>(a)), right = as_doubles(h.read<T>(b));
  const auto y = h.op(of.op, {a, b}).front();
  h.set_halo(y, in_place ? halos.a : halos.y);
  if (in_place) h.in_place(0, 0);
  ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
  std::vector<double> expected(left.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    expected[i] = of.value(left[i], right[source(p.whole, p.part, i)]);
  expect_each_close(h.read<T>(y), expected, tolerance);
  if (!in_place && halos.y > 0) {
    EXPECT_TRUE(h.halo_is_zero<T>(y));
  }
  if (in_place) return;  // a is gone

  const auto g = random_value<T>(h, p.whole, halos.y);
  const auto gradients = h.gradient({g}, {true, true});
  const auto weights = as_doubles(h.read<T>(g));
  std::vector<double> da(left.size()), db(right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::size_t at = source(p.whole, p.part, i);
    da[i] = weights[i] * of.slope_a(left[i], right[at]);
    db[at] += weights[i] * of.slope_b(left[i], right[at]);
  }
  expect_each_close(h.read<T>(gradients[0]), da, tolerance);
  // Of up to 100,000 products, each rounded.
  expect_each_close(h.read<T>(gradients[1]), db, 30 * tolerance);
}

inline void check_every_shape(const Pairwise& of) {
  OpHarness h(8);
  for (const Pattern& p : patterns(h.engine())) {
    for (bool in_place : {false, true}) {
      PairwiseHalos halos;
      if (p.whole.rank() == 4) halos = {halo(h), halo(h), halo(h)};
      check_pairwise<float>(h, of, p, halos, in_place, 1e-6);
      check_pairwise<double>(h, of, p, halos, in_place, 1e-13);
    }
  }
  for (const Pattern& p : {Pattern{{1031}, {1031}}, {{3, 517}, {1, 517}}, {{70, 33}, {70, 1}}})
    check_pairwise<float>(h, of, p, {}, true, 1e-6);
}

/// Of each operand, in double.
inline void check_against_differences(const Pairwise& of) {
  OpHarness h;
  const Pattern p{{2, 3, 4}, {2, 1, 4}};
  const auto a = random_value<double>(h, p.whole), b = random_value<double>(h, p.part),
             g = random_value<double>(h, p.whole);
  h.op(of.op, {a, b});
  const auto gradients = h.gradient({g}, {true, true});
  const std::vector<double> left = h.read<double>(a), right = h.read<double>(b),
                            weights = h.read<double>(g);
  const auto y = [&](const std::vector<double>& l, const std::vector<double>& r) {
    std::vector<double> values(l.size());
    for (std::size_t i = 0; i < l.size(); ++i)
      values[i] = of.value(l[i], r[source(p.whole, p.part, i)]);
    return values;
  };
  expect_close(h.read<double>(gradients[0]),
               numeric_gradient([&](const auto& l) { return y(l, right); }, left, weights), 1e-9);
  expect_close(h.read<double>(gradients[1]),
               numeric_gradient([&](const auto& r) { return y(left, r); }, right, weights), 1e-9);
}

inline void check_refusals(const std::string& op) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), rows = h.random("rows", {2}), row = h.random("row", {1, 3}),
             more = h.random("more", {2, 6});
  const auto i = h.declare("i", DType::int32, {2, 3}), d = h.declare("d", DType::float64, {2, 3});
  const auto refuses = [&](ValueId left, ValueId right, const std::string& text) {
    expect_error([&] { h.op(op, {left, right}); }, op + ": " + text);
  };
  refuses(i, i, "operand 'a' (i) of type int32; expected float32 or float64");
  refuses(a, d, "operand 'b' (d) of type float64; expected float32");
  refuses(d, a, "operand 'b' (a) of type float32; expected float64");
  refuses(a, rows,
          "operand 'b' (rows) of shape [2]; expected [2, 3], the shape of 'a', where any size may "
          "be 1");
  refuses(a, more,
          "operand 'b' (more) of shape [2, 6]; expected [2, 3], the shape of 'a', where any size "
          "may be 1");
  // Only the right operand is repeated.
  refuses(row, a,
          "operand 'b' (a) of shape [2, 3]; expected [1, 3], the shape of 'a', where any size may "
          "be 1");
}

}  // namespace arenite::codelets::testing
