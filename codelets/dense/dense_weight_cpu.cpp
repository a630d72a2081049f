// The weight's gradient of a dense layer, by itself and as SGD takes it.
#include "codelets/dense/dense.hpp"
#include "codelets/dense/product.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/sgd/step.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <vector>

namespace arenite::codelets {
namespace {

using xsmm::Gemm;
using xsmm::tile;
using xsmm::TiledProduct;

// dweight = Σ xᵀ · gradient over the pairs of operands, or some of its rows; written, or a block of
// rows at a time into the workspace, for SGD.

/// A tile of inputs times a tile of outputs stays in cache while all pairs are added to it.
struct GradWeightState {
  DensePairs pairs;
  /// One a pair, for whole tiles of inputs, and for the last one. In a tree each overwrites, else
  /// the first.
  std::vector<TiledProduct> whole, rest;

  explicit GradWeightState(const OpView& op, std::size_t first = 0)
      : pairs(op, first),
        whole(products(std::min(tile, pairs.end - pairs.begin) / tile * tile)),
        rest(products((pairs.end - pairs.begin) % tile)) {}

  graph::Support usable() const noexcept {
    if (pairs.begin >= pairs.end) return "no inputs";
    const auto made = [](const TiledProduct& p) { return static_cast<bool>(p); };
    return xsmm::all_made(std::all_of(whole.begin(), whole.end(), made) &&
                          std::all_of(rest.begin(), rest.end(), made));
  }

  /// The rows of a tile of inputs that begins at i.
  void tile_of_rows(const KernelCall& call, std::int64_t i, float* dweight) const noexcept {
    for (std::int64_t o = 0; o < pairs.outputs; o += tile) {
      if (pairs.tree) {
        add_tree(call, 0, pairs.samples.size(), i, o, dweight + o);
      } else {
        for (std::size_t p = 0; p < pairs.samples.size(); ++p) add(call, p, i, o, dweight + o);
      }
    }
  }

 private:
  void add(const KernelCall& call, std::size_t p, std::int64_t i, std::int64_t o,
           float* to) const noexcept {
    const TiledProduct& product = (i + tile <= pairs.end ? whole : rest)[p];
    product.at(o)(pairs.gradient(call, p) + o, pairs.x(call, p) + i, to);
  }

  /// A tile of pairs [from, to). Only the first pair's goes straight to the result.
  void add_tree(const KernelCall& call, std::size_t from, std::size_t to, std::int64_t i,
                std::int64_t o, float* out) const noexcept {
    if (to - from == 1) return add(call, from, i, o, out);
    const std::size_t middle = middle_of(from, to);
    add_tree(call, from, middle, i, o, out);
    float right[tile * tile];
    add_tree(call, middle, to, i, o, right);
    const std::int64_t width = std::min(tile, pairs.outputs - o), step = step_of(from);
    for (std::int64_t row = 0; row < std::min(tile, pairs.end - i); ++row) {
#pragma omp simd
      for (std::int64_t k = 0; k < width; ++k) out[row * step + k] += right[row * tile + k];
    }
  }

  /// From a row of what a pair's product is written to, to the next.
  std::int64_t step_of(std::size_t pair) const noexcept {
    return pairs.tree && pair > 0 ? tile : pairs.outputs;
  }

  std::vector<TiledProduct> products(std::int64_t width) const {
    std::vector<TiledProduct> all;
    if (width == 0) return all;
    for (const std::int64_t samples : pairs.samples) {
      all.emplace_back(Gemm{.m = pairs.outputs,
                            .n = width,
                            .k = samples,
                            .lda = pairs.outputs,
                            .ldb = pairs.inputs,
                            .ldc = step_of(all.size()),
                            .transpose_b = true,
                            .accumulate = !pairs.tree && !all.empty()},
                       xsmm::SamplesAre::k);
    }
    return all;
  }
};

void grad_weight_xsmm(const KernelCall& call, const GradWeightState& state) {
  const DensePairs& pairs = state.pairs;
  for (std::int64_t i = pairs.begin; i < pairs.end; i += tile)
    state.tile_of_rows(call, i, call.out<float>(0) + (i - pairs.begin) * pairs.outputs);
}

/// Adds pairs [first, last) to outputs [o, o + width) of a row.
void add_to_row(const DensePairs& pairs, const KernelCall& call, std::size_t first,
                std::size_t last, std::int64_t i, std::int64_t o, std::int64_t width, float* row) {
  for (std::size_t p = first; p < last; ++p) {
    const float *x = pairs.x(call, p), *gradient = pairs.gradient(call, p) + o;
    for (std::int64_t s = 0; s < pairs.samples[p]; ++s) {
      const float factor = x[s * pairs.inputs + i];
      const float* g = gradient + s * pairs.outputs;
#pragma omp simd
      for (std::int64_t k = 0; k < width; ++k) row[k] += factor * g[k];
    }
  }
}

/// Writes the tree of pairs [first, last).
void write_tree(const DensePairs& pairs, const KernelCall& call, std::size_t first,
                std::size_t last, std::int64_t i, std::int64_t o, std::int64_t width, float* row) {
  if (last - first == 1) {
    std::fill_n(row, width, 0.0f);
    return add_to_row(pairs, call, first, last, i, o, width, row);
  }
  const std::size_t middle = middle_of(first, last);
  write_tree(pairs, call, first, middle, i, o, width, row);
  float right[tile];
  write_tree(pairs, call, middle, last, i, o, width, right);
  for (std::int64_t k = 0; k < width; ++k) row[k] += right[k];
}

void plain_row(const DensePairs& pairs, const KernelCall& call, std::int64_t i, float* row) {
  const std::int64_t outputs = pairs.outputs;
  const std::size_t all = pairs.samples.size();
  if (!pairs.tree) {
    std::fill_n(row, outputs, 0.0f);
    return add_to_row(pairs, call, 0, all, i, 0, outputs, row);
  }
  for (std::int64_t o = 0; o < outputs; o += tile)
    write_tree(pairs, call, 0, all, i, o, std::min(tile, outputs - o), row + o);
}

void grad_weight_plain(const KernelCall& call, const DensePairs& pairs) {
  for (std::int64_t i = pairs.begin; i < pairs.end; ++i)
    plain_row(pairs, call, i, call.out<float>(0) + (i - pairs.begin) * pairs.outputs);
}

// The same and SGD: operands weight, learning_rate, velocity?, and the pairs from operand 3 on.

/// Rows whose gradient stands in the workspace.
void step_rows(const DensePairs& pairs, const sgd::Step& step, const KernelCall& call,
               const DenseUpdated& updated, std::int64_t from, std::int64_t to) {
  const std::int64_t at = (from - pairs.begin) * pairs.outputs;
  step(*call.in<float>(1), static_cast<const float*>(call.workspace), updated.weight + at,
       updated.velocity ? updated.velocity + at : nullptr, (to - from) * pairs.outputs);
}

struct XsmmUpdate : GradWeightState {
  sgd::Step step;

  explicit XsmmUpdate(const OpView& op)
      : GradWeightState(op, DensePairs::of_update), step(op, op.has_operand(2)) {}
};

void update_xsmm(const KernelCall& call, const XsmmUpdate& state) {
  const DensePairs& pairs = state.pairs;
  const DenseUpdated updated(call, pairs);
  for (std::int64_t i = pairs.begin; i < pairs.end; i += tile) {
    state.tile_of_rows(call, i, static_cast<float*>(call.workspace));
    step_rows(pairs, state.step, call, updated, i, std::min(i + tile, pairs.end));
  }
}

struct PlainUpdate {
  DensePairs pairs;
  sgd::Step step;

  explicit PlainUpdate(const OpView& op)
      : pairs(op, DensePairs::of_update), step(op, op.has_operand(2)) {}
};

void update_plain(const KernelCall& call, const PlainUpdate& update) {
  const auto& [pairs, step] = update;
  const DenseUpdated updated(call, pairs);
  for (std::int64_t i = pairs.begin; i < pairs.end; ++i) {
    plain_row(pairs, call, i, static_cast<float*>(call.workspace));
    step_rows(pairs, step, call, updated, i, i + 1);
  }
}

template <std::int64_t rows>
std::int64_t workspace_of_rows(const OpView& op) {
  return std::min(rows, op.operand(0).shape[0]) * op.operand(0).shape[1] * float_bytes;
}

}  // namespace

std::vector<Kernel> dense_grad_weight_kernels() {
  return {{.name = "xsmm",
           .jit = true,
           .supports = [](const OpView& op) { return GradWeightState(op).usable(); },
           .prepare = prepare<made_of<GradWeightState>, grad_weight_xsmm>},
          {.name = "plain", .prepare = prepare<made_of<DensePairs>, grad_weight_plain>}};
}

std::vector<Kernel> dense_grad_weight_sgd_kernels() {
  return {dense_direct_update(),
          {.name = "xsmm",
           .jit = true,
           .supports = [](const OpView& op) { return XsmmUpdate(op).usable(); },
           .workspace = workspace_of_rows<tile>,
           .prepare = prepare<made_of<XsmmUpdate>, update_xsmm>},
          {.name = "plain",
           .workspace = workspace_of_rows<1>,
           .prepare = prepare<made_of<PlainUpdate>, update_plain>}};
}

}  // namespace arenite::codelets
