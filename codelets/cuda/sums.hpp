// Sums over some axes of a value, with the same bits each time: a term's place in the sum depends
// on nothing but the shapes.
#pragma once

#include "codelets/cuda/offsets.hpp"
#include "codelets/sizes.hpp"

namespace arenite::codelets::cuda {

/// y[i] = sum of x over the terms of i. Threads first make sums of `chunk` terms each, in double,
/// in the workspace; then each sum's chunks are added in order.
struct Sums {
  Offsets<1> sums, terms;  ///< in x
  std::int64_t count = 1, length = 1, chunk = 1, chunks = 1;

  /// As many threads as keep a large GPU busy, with enough terms each to be worth a thread.
  void deal_out() {
    constexpr std::int64_t wanted_threads = 1 << 17, least_terms = 32;
    count = sums.count();
    length = terms.count();
    const std::int64_t most = std::max<std::int64_t>(1, length / least_terms);
    chunks = std::clamp(wanted_threads / std::max<std::int64_t>(1, count), std::int64_t{1}, most);
    chunk = divide_up(std::max<std::int64_t>(1, length), chunks);
    chunks = divide_up(std::max<std::int64_t>(1, length), chunk);
  }

  std::int64_t workspace() const {
    return count * chunks * static_cast<std::int64_t>(sizeof(double));
  }
};

/// The sums over all axes along which y's size is not x's.
inline Sums sums_to(const graph::Value& x, const Shape& y) {
  const Strides from(x);
  Sums made;
  for (int i = 0; i < x.shape.rank(); ++i) {
    const std::int64_t step = from.axis[static_cast<std::size_t>(i)];
    (y[i] == x.shape[i] ? made.sums : made.terms).add(x.shape[i], {step});
  }
  made.deal_out();
  return made;
}

template <class T>
static void run_sums(const runtime::KernelCall& call, const Sums& s, const T* x, T* y) {
  auto* partial = static_cast<double*>(call.workspace);
  // Neighbouring threads make neighbouring sums, whose terms lie side by side.
  for_each(call, s.count * s.chunks, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t sum = i % s.count, first = i / s.count * s.chunk;
    const std::int64_t end = first + s.chunk < s.length ? first + s.chunk : s.length;
    const T* from = x + s.sums.at(sum).of[0];
    double total = 0;
    for (std::int64_t t = first; t < end; ++t)
      total += static_cast<double>(from[s.terms.at(t).of[0]]);
    partial[i] = total;
  });
  for_each(call, s.count, [=] ARENITE_THREAD(std::int64_t i) {
    double total = 0;
    for (std::int64_t c = 0; c < s.chunks; ++c) total += partial[c * s.count + i];
    y[i] = static_cast<T>(total);
  });
}

}  // namespace arenite::codelets::cuda
