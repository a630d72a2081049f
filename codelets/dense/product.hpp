// Matrix products of any size on LIBXSMM microkernels, made ready once and run from any thread.
#pragma once

#include "codelets/xsmm.hpp"

#include <algorithm>
#include <cstdint>

namespace arenite::codelets::xsmm {

/// Which size of a product is that of the batch.
enum class SamplesAre { m, n, k };

/// A batch-reduce product. Columns that are samples are walked 64 at a time where there are many,
/// then 16, and the last 16 to 31 in one go: code that LIBXSMM generates is never freed, and
/// batches of all sizes share it so. (From 12 on it sums alike for any n, so that a sample's bits
/// depend on none.)
class Columns {
 public:
  static constexpr std::int64_t most_terms = 64;  ///< of a call

  Columns() = default;
  explicit Columns(const Gemm& gemm, SamplesAre samples = SamplesAre::n)
      : b_step_(gemm.transpose_b ? 1 : gemm.ldb), c_step_(gemm.ldc) {
    if (!in_reach({gemm.n})) return;
    std::int64_t left = gemm.n;
    const auto walk = [&](std::int64_t step, std::int64_t count) {
      left -= step * count;
      add(gemm, step, count);
    };
    if (samples == SamplesAre::n) {
      // A rest of 1 to 15 goes with some before it.
      const std::int64_t rest = left % wide;
      if (left >= 2 * wide) walk(wide, left / wide - (rest > 0 && rest < narrow ? 1 : 0));
      if (left >= 2 * narrow) walk(narrow, left / narrow - 1);
    }
    if (left > 0) walk(left, 1);
  }

  /// LIBXSMM has the kernels that it takes.
  explicit operator bool() const noexcept {
    return kinds_ > 0 && std::all_of(walks_, walks_ + kinds_, [](const Walk& w) { return w.run; });
  }

  void operator()(const float* const* as, const float* const* bs, float* c,
                  Count count) const noexcept {
    const float* shifted[most_terms];
    std::int64_t at = 0;
    for (const Walk* walk = walks_; walk != walks_ + kinds_; ++walk) {
      for (const std::int64_t end = at + walk->step * walk->count; at < end; at += walk->step) {
        for (Count i = 0; i < count; ++i) shifted[i] = bs[i] + at * b_step_;
        // LIBXSMM only reads the addresses.
        walk->run(const_cast<const float**>(as), shifted, c + at * c_step_, &count);
      }
    }
  }

 private:
  static constexpr std::int64_t wide = 64, narrow = 16;
  struct Walk {
    BatchReduce run = nullptr;
    std::int64_t step = 0, count = 0;
  };

  void add(Gemm gemm, std::int64_t step, std::int64_t count) {
    gemm.n = step;
    walks_[kinds_++] = {dispatch(gemm), step, count};
  }

  Walk walks_[3];
  int kinds_ = 0;
  std::int64_t b_step_ = 0, c_step_ = 0;
};

/// C [+]= A·B with A m×k, B k×n, C m×n, all column-major; `transpose_b`: B lies in memory as n×k.
/// k is cut in blocks of at most 64 that one batch-reduce call walks with C in registers.
class Product {
 public:
  Product() = default;
  /// Batches of all sizes share code for k, too, where that is their size.
  explicit Product(const Gemm& whole, SamplesAre samples = SamplesAre::n)
      : lda_(whole.lda), ldb_(whole.transpose_b ? whole.ldb : 1) {
    block_ = block_of(whole.k);
    if (samples == SamplesAre::k && whole.k % 16 != 0) block_ = std::min<std::int64_t>(whole.k, 16);
    blocks_ = block_ > 0 ? whole.k / block_ : 0;
    Gemm gemm = whole;
    gemm.k = block_;
    first_ = Columns(gemm, samples);
    gemm.accumulate = true;
    if (blocks_ > Columns::most_terms) more_ = Columns(gemm, samples);
    gemm.k = whole.k - blocks_ * block_;
    has_rest_ = gemm.k > 0;
    if (has_rest_) rest_ = Columns(gemm, samples);
  }

  /// LIBXSMM has all the kernels it takes.
  explicit operator bool() const noexcept {
    return first_ && (more_ || blocks_ <= Columns::most_terms) && (rest_ || !has_rest_);
  }

  void operator()(const float* a, const float* b, float* c) const noexcept {
    constexpr std::int64_t most = Columns::most_terms;
    const float *as[most], *bs[most];
    for (std::int64_t at = 0; at < blocks_; at += most) {
      const std::int64_t n = std::min(blocks_ - at, most);
      for (std::int64_t i = 0; i < n; ++i) {
        as[i] = a + (at + i) * block_ * lda_;
        bs[i] = b + (at + i) * block_ * ldb_;
      }
      (at == 0 ? first_ : more_)(as, bs, c, static_cast<Count>(n));
    }
    if (has_rest_) {
      as[0] = a + blocks_ * block_ * lda_;
      bs[0] = b + blocks_ * block_ * ldb_;
      rest_(as, bs, c, 1);
    }
  }

 private:
  /// The largest divisor from 16 to 64, so that nothing is left over; else 64 and a rest.
  static std::int64_t block_of(std::int64_t k) noexcept {
    if (k <= 64) return k;
    for (std::int64_t block = 64; block >= 16; --block) {
      if (k % block == 0) return block;
    }
    return 64;
  }

  Columns first_, more_, rest_;
  std::int64_t lda_ = 0, ldb_ = 0;
  std::int64_t block_ = 0, blocks_ = 0;
  bool has_rest_ = false;
};

/// A dimension is walked in tiles of 64 (four AVX-512 vectors: C's tile stays in registers) and a
/// rest.
constexpr std::int64_t tile = 64;

/// One product for whole tiles of m, one for the rest.
struct TiledProduct {
  Product whole, rest;

  explicit TiledProduct(const Gemm& gemm, SamplesAre samples = SamplesAre::n) : m_(gemm.m) {
    Gemm part = gemm;
    part.m = tile;
    if (m_ >= tile) whole = Product(part, samples);
    part.m = m_ % tile;
    if (part.m > 0) rest = Product(part, samples);
  }

  explicit operator bool() const noexcept {
    return m_ > 0 && (m_ < tile || whole) && (m_ % tile == 0 || rest);
  }

  /// The product for the tile that begins at `from`.
  const Product& at(std::int64_t from) const noexcept { return from + tile <= m_ ? whole : rest; }

  /// `f(product, from, size)` for each tile.
  template <class F>
  void for_each(F f) const noexcept {
    std::int64_t at = 0;
    for (; at + tile <= m_; at += tile) f(whole, at, tile);
    if (at < m_) f(rest, at, m_ - at);
  }

 private:
  std::int64_t m_;
};

}  // namespace arenite::codelets::xsmm
