// Sums of many terms, with the same bits each time: a term's place in its sum depends on nothing
// but the shapes.
#pragma once

#include "codelets/cuda/blocks.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/sizes.hpp"

namespace arenite::codelets::cuda {

/// Σ term(p) for p = first, first + step, … below `many`, in double and in that order, with eight
/// terms under way: a compiler that may not reorder sums would wait for each.
template <class Term>
ARENITE_GPU double sum_ahead(std::int64_t first, std::int64_t many, std::int64_t step,
                             const Term& term) {
  constexpr int ahead = 8;
  double total = 0;
  ARENITE_KEEP_ROLLED
  for (std::int64_t p = first; p < many; p += ahead * step) {
    decltype(term(p)) some[ahead];
    ARENITE_UNROLL_ALL
    for (int i = 0; i < ahead; ++i) {
      some[i] = 0;
      if (p + i * step < many) some[i] = term(p + i * step);
    }
    ARENITE_UNROLL_ALL
    for (int i = 0; i < ahead; ++i) total += static_cast<double>(some[i]);
  }
  return total;
}

/// Σ from[i · stride], i < count; in four sums side by side, for each addition waits for the last.
template <int count>
ARENITE_GPU double sum_of(const double* from, int stride) {
  double part[4]{};
  ARENITE_UNROLL_ALL
  for (int i = 0; i < count; ++i) part[i % 4] += from[i * stride];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/// store(i, Σ parts[p · count + i] over p), in double, for each i: 32 sums a block, whose threads
/// share each one's terms.
template <class T, class Store>
struct AddParts {
  static constexpr int sums = 32, lanes = 16, threads = sums * lanes;
  struct Shared {
    double of[lanes][sums];
  };

  std::int64_t count, many;
  const T* parts;
  Store store;

  ARENITE_GPU void operator()(Block<threads> block, Shared& shared) const {
    const std::int64_t first = std::int64_t{block.index} * sums;
    block.each([&](int t) {
      const std::int64_t i = first + t % sums;
      double total = 0;
      if (i < count) {
        total =
            sum_ahead(t / sums, many, lanes, [&](std::int64_t p) { return parts[p * count + i]; });
      }
      shared.of[t / sums][t % sums] = total;
    });
    block.each([&](int t) {
      if (t >= sums || first + t >= count) return;
      double total = 0;
      ARENITE_UNROLL_ALL
      for (int lane = 0; lane < lanes; ++lane) total += shared.of[lane][t];
      store(first + t, total);
    });
  }
};

template <class T, class Store>
static void add_parts(const KernelCall& call, std::int64_t count, std::int64_t many, const T* parts,
                      const Store& store) {
  for_each_block(call, divide_up(count, AddParts<T, Store>::sums),
                 AddParts<T, Store>{count, many, parts, store});
}

/// How `count` sums of `length` terms each are dealt out: threads make sums of `chunk` terms, in
/// double, in the workspace, and blocks add those. Short sums are made in one go.
struct Chunks {
  std::int64_t count = 0, length = 0, chunk = 1, chunks = 1;

  Chunks() = default;
  /// As many threads as keep a large GPU busy, with enough terms each to be worth a thread.
  Chunks(std::int64_t sums, std::int64_t terms) : count(sums), length(terms) {
    constexpr std::int64_t wanted_threads = 1 << 17, least_terms = 16,
                           most_chunks = 1024;  // beyond, adding them takes longer than making them
    const std::int64_t in_one_go = count < 4096 ? 32 : 128;
    const std::int64_t most = length <= in_one_go ? 1 : length / least_terms;
    const std::int64_t wanted = std::clamp(wanted_threads / std::max<std::int64_t>(1, count),
                                           std::int64_t{1}, std::min(most, most_chunks));
    chunk = divide_up(std::max<std::int64_t>(1, length), wanted);
    chunks = divide_up(std::max<std::int64_t>(1, length), chunk);
  }

  std::int64_t workspace() const {
    return chunks == 1 ? 0 : count * chunks * static_cast<std::int64_t>(sizeof(double));
  }
};

/// store(i, Σ term(i, t) over t) for each sum i. Neighbouring threads make neighbouring sums.
template <class Term, class Store>
static void sum_chunks(const KernelCall& call, const Chunks& s, const Term& term,
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
  add_parts<double>(call, s.count, s.chunks, partial, store);
}

}  // namespace arenite::codelets::cuda
