// In LIBXSMM's column-major eyes the row-major c [rows, columns] is columns × rows, the product of
// b (columns × inner) by a (inner × rows).
#include "codelets/matmul/sizes.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"
#include "codelets/xsmm.hpp"

#include <algorithm>
#include <utility>

namespace arenite::codelets {
namespace {

using xsmm::BatchReduce;
using xsmm::Transpose;

/// A product as kernels see it: operand `left` times operand `right`.
struct Product {
  MatmulSizes size;
  std::size_t left = 0, right = 1;

  explicit Product(const OpView& op) : size(op) {
    // A single column lies in memory as a single row does: cᵀ = bᵀ · aᵀ is long where c is narrow.
    if (size.columns == 1 && size.rows > 1) {
      std::swap(left, right);
      std::swap(size.rows, size.columns);
      const bool transposed = size.transpose_a;
      size.transpose_a = false;
      size.transpose_b = !transposed;
    }
    // Nor does it matter of a single row how it is read.
    if (size.rows == 1) size.transpose_a = false;
  }
};

// c = a · b with LIBXSMM.

/// Columns are walked in tiles of 48 (three AVX-512 vectors by eight rows of c stay in registers)
/// and a rest.
constexpr std::int64_t tile = 48;

/// Rows of b a page or more apart hit few sets of the cache: a tile of them is copied, which many
/// rows of a pay for.
bool copies(const MatmulSizes& s) noexcept {
  return s.transpose_b || (s.rows >= 32 && s.columns >= 1024);
}

/// Floats between the rows of such a copy.
std::int64_t copy_stride(const MatmulSizes& s) noexcept { return std::min(tile, s.columns); }

/// So many terms of each sum at a time: their tile of b stays in the first-level cache, or, where
/// it is copied, in the second-level one.
std::int64_t most_terms(const MatmulSizes& s) noexcept { return copies(s) ? 256 : 128; }

/// What adds some terms to the sums: to whole tiles of columns, and to the rest.
struct Block {
  Part terms{};
  BatchReduce whole = nullptr, rest = nullptr;
  Transpose transpose_whole = nullptr, transpose_rest = nullptr;
};

struct XsmmState {
  Product product;
  bool usable = true;
  std::vector<Block> blocks;

  explicit XsmmState(const OpView& op) : product(op) {
    const MatmulSizes& s = product.size;
    for (const Part& terms : split(s.inner, most_terms(s))) {
      Block block{.terms = terms};
      if (s.columns >= tile) add(block.whole, block.transpose_whole, terms, tile);
      if (s.columns % tile > 0) add(block.rest, block.transpose_rest, terms, s.columns % tile);
      if (!usable) return;
      blocks.push_back(block);
    }
  }

  /// Transposing b would take longer than sums for a few rows that it is read along.
  static bool pays(const MatmulSizes& s) noexcept {
    return !s.transpose_b || s.transpose_a || s.rows > 4;
  }

 private:
  void add(BatchReduce& multiply, Transpose& transpose, const Part& terms, std::int64_t width) {
    const MatmulSizes& s = product.size;
    multiply = xsmm::dispatch({.m = width,
                               .n = s.rows,
                               .k = terms.count,
                               .lda = copies(s) ? copy_stride(s) : s.columns,
                               .ldb = s.transpose_a ? s.rows : s.inner,
                               .ldc = s.columns,
                               .transpose_b = s.transpose_a,
                               .accumulate = terms.first > 0});
    if (s.transpose_b) transpose = xsmm::dispatch_transpose(width, terms.count, copy_stride(s));
    usable = usable && multiply && (transpose || !s.transpose_b);
  }
};

graph::Support xsmm_supports(const OpView& op) {
  const MatmulSizes s = Product(op).size;
  if (op.operand(0).type != DType::float32) return "elements that are not float32";
  if (!XsmmState::pays(s)) return "at most 4 rows by a transposed matrix";
  return xsmm::all_made(xsmm::in_reach({s.rows, s.inner, s.columns}) && XsmmState(op).usable);
}

std::int64_t xsmm_workspace(const OpView& op) {
  const MatmulSizes s = Product(op).size;
  return copies(s) ? std::min(s.inner, most_terms(s)) * copy_stride(s) * float_bytes : 0;
}

/// A tile of b's columns, of which LIBXSMM is to read `terms` rows from the block's first on.
const float* tile_of_b(const MatmulSizes& s, const Block& block, std::int64_t from,
                       std::int64_t width, const float* b, float* copy) noexcept {
  if (s.transpose_b) {
    const auto from_row = static_cast<unsigned>(s.inner),
               to_row = static_cast<unsigned>(copy_stride(s));
    const Transpose transpose = width == tile ? block.transpose_whole : block.transpose_rest;
    transpose(b + from * s.inner + block.terms.first, &from_row, copy, &to_row);
    return copy;
  }
  const float* rows = b + block.terms.first * s.columns + from;
  if (!copies(s)) return rows;
  for (std::int64_t p = 0; p < block.terms.count; ++p)
    std::copy_n(rows + p * s.columns, width, copy + p * copy_stride(s));
  return copy;
}

void run_xsmm(const KernelCall& call, const XsmmState& state) {
  const MatmulSizes& s = state.product.size;
  const float *a = call.in<float>(state.product.left), *b = call.in<float>(state.product.right);
  float* c = call.out<float>(0);
  auto* copy = static_cast<float*>(call.workspace);
  for (std::int64_t i = 0; i < s.batch; ++i) {
    for (const Block& block : state.blocks) {
      for (std::int64_t from = 0; from < s.columns; from += tile) {
        const std::int64_t width = std::min(tile, s.columns - from);
        // LIBXSMM moves both addresses.
        const float *of_a = a + block.terms.first * (s.transpose_a ? s.rows : 1),
                    *of_b = tile_of_b(s, block, from, width, b, copy);
        const xsmm::Count one = 1;
        (width == tile ? block.whole : block.rest)(&of_b, &of_a, c + from, &one);
      }
    }
    a += s.rows * s.inner;
    b += s.inner * s.columns;
    c += s.rows * s.columns;
  }
}

// c = a · b without.

/// Rows of b, so many at a time, serve all rows of a before the next ones come from memory.
constexpr std::int64_t plain_terms = 64;

/// c += a · b for terms [begin, end), the elements of a row of a `step` apart.
template <class T>
void add_rows(const MatmulSizes& s, std::int64_t begin, std::int64_t end, const T* a, const T* b,
              T* c) noexcept {
  const std::int64_t columns = s.columns, row = s.transpose_a ? 1 : s.inner,
                     step = s.transpose_a ? s.rows : 1;
  for (std::int64_t i = 0; i < s.rows; ++i) {
    T* sums = c + i * columns;
    for (std::int64_t p = begin; p < end; ++p) {
      const T factor = a[i * row + p * step];
      const T* from = b + p * columns;
#pragma omp simd
      for (std::int64_t j = 0; j < columns; ++j) sums[j] += factor * from[j];
    }
  }
}

/// The sum for one element of c, the elements of a row of a `step` apart.
template <class T>
T dot(std::int64_t inner, const T* a, std::int64_t step, const T* b) noexcept {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t p = 0; p < inner; ++p) sum += a[p * step] * b[p];
  return sum;
}

/// Those for four elements side by side, which do not wait for each other.
template <class T>
void four_dots(std::int64_t inner, const T* a, const T* b, T* c) noexcept {
  const T *b1 = b + inner, *b2 = b1 + inner, *b3 = b2 + inner;
  T c0 = 0, c1 = 0, c2 = 0, c3 = 0;
#pragma omp simd reduction(+ : c0, c1, c2, c3)
  for (std::int64_t p = 0; p < inner; ++p) {
    c0 += a[p] * b[p];
    c1 += a[p] * b1[p];
    c2 += a[p] * b2[p];
    c3 += a[p] * b3[p];
  }
  c[0] = c0, c[1] = c1, c[2] = c2, c[3] = c3;
}

/// c = a · bᵀ with b read along its rows; a few of them serve all rows of a.
template <class T>
void all_dots(const MatmulSizes& s, const T* a, const T* b, T* c) noexcept {
  const std::int64_t row = s.transpose_a ? 1 : s.inner, step = s.transpose_a ? s.rows : 1;
  std::int64_t j = 0;
  for (; !s.transpose_a && j + 4 <= s.columns; j += 4) {
    for (std::int64_t i = 0; i < s.rows; ++i)
      four_dots(s.inner, a + i * row, b + j * s.inner, c + i * s.columns + j);
  }
  for (; j < s.columns; ++j) {
    for (std::int64_t i = 0; i < s.rows; ++i)
      c[i * s.columns + j] = dot(s.inner, a + i * row, step, b + j * s.inner);
  }
}

template <class T>
void run_plain(const KernelCall& call, const Product& product) {
  const MatmulSizes& s = product.size;
  const T *a = call.in<T>(product.left), *b = call.in<T>(product.right);
  T* c = call.out<T>(0);
  for (std::int64_t i = 0; i < s.batch; ++i) {
    if (s.transpose_b) {
      all_dots(s, a, b, c);
    } else {
      std::fill_n(c, s.rows * s.columns, T{0});
      for (std::int64_t p = 0; p < s.inner; p += plain_terms)
        add_rows(s, p, std::min(p + plain_terms, s.inner), a, b, c);
    }
    a += s.rows * s.inner;
    b += s.inner * s.columns;
    c += s.rows * s.columns;
  }
}

}  // namespace

std::vector<Kernel> matmul_kernels() {
  return {{.name = "xsmm",
           .jit = true,
           .supports = xsmm_supports,
           .workspace = xsmm_workspace,
           .prepare = prepare<made_of<XsmmState>, run_xsmm>},
          {.name = "plain",
           .prepare = prepare_real<made_of<Product>, run_plain<float>, run_plain<double>>}};
}

}  // namespace arenite::codelets
