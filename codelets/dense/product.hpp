// Matrix products of any size on LIBXSMM microkernels, made ready once and run from any thread.
#pragma once

#include "codelets/xsmm.hpp"

#include <algorithm>
#include <cstdint>

namespace arenite::codelets::xsmm {

/// C [+]= A·B with A m×k, B k×n, C m×n, all column-major; `transpose_b`: B lies in memory as n×k.
/// k is cut in blocks of at most 64 that one batch-reduce call walks with C in registers.
class Product {
 public:
  Product() = default;
  explicit Product(const Gemm& whole) : lda_(whole.lda), ldb_(whole.transpose_b ? whole.ldb : 1) {
    block_ = block_of(whole.k);
    blocks_ = block_ > 0 ? whole.k / block_ : 0;
    Gemm gemm = whole;
    gemm.k = block_;
    first_ = dispatch(gemm);
    gemm.accumulate = true;
    more_ = dispatch(gemm);
    gemm.k = whole.k - blocks_ * block_;
    has_rest_ = gemm.k > 0;
    if (has_rest_) rest_ = dispatch(gemm);
  }

  /// LIBXSMM has all the kernels it takes.
  explicit operator bool() const noexcept { return first_ && more_ && (rest_ || !has_rest_); }

  void operator()(const float* a, const float* b, float* c) const noexcept {
    const float *as[most_blocks], *bs[most_blocks];
    BatchReduce run = first_;
    for (std::int64_t at = 0; at < blocks_; at += most_blocks, run = more_) {
      const std::int64_t n = std::min(blocks_ - at, most_blocks);
      for (std::int64_t i = 0; i < n; ++i) {
        as[i] = a + (at + i) * block_ * lda_;
        bs[i] = b + (at + i) * block_ * ldb_;
      }
      const Count count = static_cast<Count>(n);
      run(as, bs, c, &count);
    }
    if (has_rest_) {
      as[0] = a + blocks_ * block_ * lda_;
      bs[0] = b + blocks_ * block_ * ldb_;
      const Count count = 1;
      rest_(as, bs, c, &count);
    }
  }

 private:
  static constexpr std::int64_t most_blocks =
      64;  ///< of one call; their addresses stand on the stack

  /// The largest divisor from 16 to 64, so that nothing is left over; else 64 and a rest.
  static std::int64_t block_of(std::int64_t k) noexcept {
    if (k <= 64) return k;
    for (std::int64_t block = 64; block >= 16; --block) {
      if (k % block == 0) return block;
    }
    return 64;
  }

  BatchReduce first_ = nullptr, more_ = nullptr, rest_ = nullptr;
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

  explicit TiledProduct(const Gemm& gemm) : m_(gemm.m) {
    Gemm part = gemm;
    part.m = tile;
    if (m_ >= tile) whole = Product(part);
    part.m = m_ % tile;
    if (part.m > 0) rest = Product(part);
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
