// Sums of many terms, with the same bits each time: a term's place in its sum depends on nothing
// but the shapes.
#pragma once

#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/offsets.hpp"
#include "codelets/sizes.hpp"

namespace arenite::codelets::cuda {

/// How `count` sums of `length` terms each are dealt out: threads make sums of `chunk` terms, in
/// double, in the workspace; others add those in groups, where there are many; then each sum's last
/// ones are added in order. Short sums are made in one go.
struct Chunks {
  std::int64_t count = 0, length = 0, chunk = 1, chunks = 1, groups = 0;

  /// Chunks that one thread adds: beyond, it would take longer than all before.
  static constexpr std::int64_t group = 64;

  Chunks() = default;
  /// As many threads as keep a large GPU busy, with enough terms each to be worth a thread.
  Chunks(std::int64_t sums, std::int64_t terms) : count(sums), length(terms) {
    constexpr std::int64_t wanted_threads = 1 << 17, least_terms = 32, in_one_go = 128;
    const std::int64_t most = length <= in_one_go ? 1 : length / least_terms;
    const std::int64_t wanted =
        std::clamp(wanted_threads / std::max<std::int64_t>(1, count), std::int64_t{1}, most);
    chunk = divide_up(std::max<std::int64_t>(1, length), wanted);
    chunks = divide_up(std::max<std::int64_t>(1, length), chunk);
    if (chunks > group) groups = divide_up(chunks, group);
  }

  std::int64_t workspace() const {
    const std::int64_t partial = chunks == 1 ? 0 : chunks + groups;
    return count * partial * static_cast<std::int64_t>(sizeof(double));
  }
};

/// into[j · count + i] = Σ from[c · count + i] over the j-th `size` of the `many` c.
template <class T>
static void add_in_groups(const runtime::KernelCall& call, std::int64_t count, std::int64_t many,
                          std::int64_t size, const T* from, T* into) {
  for_each(call, count * divide_up(many, size), [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t first = i / count * size;
    const std::int64_t end = first + size < many ? first + size : many;
    T total = 0;
    ARENITE_UNROLL
    for (std::int64_t c = first; c < end; ++c) total += from[c * count + i % count];
    into[i] = total;
  });
}

/// store(i, Σ term(i, t) over t) for each sum i. Neighbouring threads make neighbouring sums.
template <class Term, class Store>
static void sum_chunks(const runtime::KernelCall& call, const Chunks& s, const Term& term,
                       const Store& store) {
  if (s.chunks == 1) {
    for_each(call, s.count, [=] ARENITE_THREAD(std::int64_t i) {
      double total = 0;
      for (std::int64_t t = 0; t < s.length; ++t) total += static_cast<double>(term(i, t));
      store(i, total);
    });
    return;
  }
  auto* partial = static_cast<double*>(call.workspace);
  for_each(call, s.count * s.chunks, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t first = i / s.count * s.chunk;
    const std::int64_t end = first + s.chunk < s.length ? first + s.chunk : s.length;
    double total = 0;
    for (std::int64_t t = first; t < end; ++t) total += static_cast<double>(term(i % s.count, t));
    partial[i] = total;
  });
  const double* last = partial;
  if (s.groups > 0) {
    double* const grouped = partial + s.count * s.chunks;
    add_in_groups<double>(call, s.count, s.chunks, Chunks::group, partial, grouped);
    last = grouped;
  }
  const std::int64_t left = s.groups > 0 ? s.groups : s.chunks;
  for_each(call, s.count, [=] ARENITE_THREAD(std::int64_t i) {
    double total = 0;
    ARENITE_UNROLL
    for (std::int64_t c = 0; c < left; ++c) total += last[c * s.count + i];
    store(i, total);
  });
}

/// Sums over some axes of a value.
struct Sums {
  Offsets<1> sums, terms;  ///< in x
  Chunks chunks;

  void deal_out() { chunks = Chunks(sums.count(), terms.count()); }
};

/// Those over all axes along which y's size is not x's.
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
  const Offsets<1> sums = s.sums, terms = s.terms;
  sum_chunks(
      call, s.chunks,
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t t) {
        return x[sums.at(i).of[0] + terms.at(t).of[0]];
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) { y[i] = static_cast<T>(total); });
}

}  // namespace arenite::codelets::cuda
