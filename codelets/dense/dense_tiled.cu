// Dense layers on tiles of products: bias, ReLU, its mask and the update are done with the elements
// while a thread has them, so that small layers are one grid, or two where the depth is in parts.
#include "codelets/cuda/matrices.hpp"
#include "codelets/cuda/plain.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/image.hpp"
#include "codelets/sgd/step_one.hpp"

namespace arenite::codelets {
namespace {

using cuda::Four;

/// Writes what each element of a product becomes: each.of(i, column, value).
template <class Each>
struct Write {
  float* to;

  ARENITE_GPU void operator()(std::int64_t i, std::int32_t column, float value) const {
    to[i] = each().of(i, column, value);
  }
  ARENITE_GPU void four(std::int64_t i, std::int32_t column, const float (&values)[4]) const {
    Four four;
    ARENITE_UNROLL_ALL
    for (int j = 0; j < 4; ++j) four.of[j] = each().of(i + j, column + j, values[j]);
    *reinterpret_cast<Four*>(to + i) = four;
  }

 private:
  ARENITE_GPU const Each& each() const { return static_cast<const Each&>(*this); }
};

/// product + bias, or its ReLU.
struct Activated : Write<Activated> {
  const float* bias;  ///< or nullptr
  bool relu;

  ARENITE_GPU float of(std::int64_t, std::int32_t column, float value) const {
    if (bias != nullptr) value += bias[column];
    return relu && value <= 0 ? 0 : value;  // a NaN stays one
  }
};

struct Forward : cuda::MatrixProduct<false, true> {
  bool biased, relu;
};

Forward forward(const OpView& op) {
  const DenseForward s(op);
  return {{s.n, s.o, s.i, s.i, s.i % 4 == 0, s.o % 4 == 0}, s.biased, s.relu};
}

void run_forward(const KernelCall& call, const Forward& s) {
  s.run(call, call.in<float>(0), call.in<float>(1),
        Activated{{call.out<float>(0)}, s.biased ? call.in<float>(2) : nullptr, s.relu});
}

/// The product, where the output of the ReLU before the layer is above 0.
struct Masked : Write<Masked> {
  const float* output;  ///< nullptr: everywhere

  ARENITE_GPU float of(std::int64_t i, std::int32_t, float value) const {
    return output != nullptr && output[i] <= 0 ? 0 : value;
  }
};

struct GradInput : cuda::MatrixProduct<false, false> {
  bool masked;
};

GradInput grad_input(const OpView& op) {
  const DenseGradInput s(op);
  return {{s.n, s.i, s.o, s.o, s.o % 4 == 0, s.o % 4 == 0}, s.masked};
}

void run_grad_input(const KernelCall& call, const GradInput& s) {
  s.run(call, call.in<float>(0), call.in<float>(1),
        Masked{{call.out<float>(0)}, s.masked ? call.in<float>(2) : nullptr});
}

struct Unchanged : Write<Unchanged> {
  ARENITE_GPU float of(std::int64_t, std::int32_t, float value) const { return value; }
};

/// A step with the gradient that an element of the product is.
struct Step {
  sgd::Rule rule;
  const float* rate;
  sgd::States states;

  ARENITE_GPU void operator()(std::int64_t i, std::int32_t, float gradient) const {
    states.step(rule, *rate, gradient, i);
  }
  ARENITE_GPU void four(std::int64_t i, std::int32_t, const float (&gradient)[4]) const {
    Four w = *reinterpret_cast<const Four*>(states.weight + i);
    // Apart, so that no address of the four is asked for: they stay in registers.
    if (states.velocity == nullptr) {
      ARENITE_UNROLL_ALL
      for (int j = 0; j < 4; ++j) sgd::step_one(rule, *rate, gradient[j], w.of[j], nullptr);
    } else {
      Four v = *reinterpret_cast<const Four*>(states.velocity + i);
      ARENITE_UNROLL_ALL
      for (int j = 0; j < 4; ++j) sgd::step_one(rule, *rate, gradient[j], w.of[j], &v.of[j]);
      *reinterpret_cast<Four*>(states.new_velocity + i) = v;
    }
    *reinterpret_cast<Four*>(states.new_weight + i) = w;
  }
};

/// xᵀ · gradient of one pair. (More than one lane's are a library's, or the plain grid's.)
struct WeightGradient {
  DensePairs pairs;
  cuda::MatrixProduct<true, true> product;

  WeightGradient(const OpView& op, std::size_t first_pair)
      : pairs(op, first_pair),
        product(pairs.end - pairs.begin, pairs.outputs, pairs.samples[0], pairs.inputs,
                pairs.inputs % 4 == 0 && pairs.begin % 4 == 0 && (pairs.end - pairs.begin) % 4 == 0,
                pairs.outputs % 4 == 0) {}

  std::int64_t workspace() const { return product.workspace(); }
  template <class Finish>
  void run(const KernelCall& call, const Finish& finish) const {
    product.run(call, pairs.x(call, 0) + pairs.begin, pairs.gradient(call, 0), finish);
  }
};

WeightGradient grad_weight(const OpView& op) { return {op, 0}; }

void run_grad_weight(const KernelCall& call, const WeightGradient& s) {
  s.run(call, Unchanged{{call.out<float>(0)}});
}

struct Update : WeightGradient {
  sgd::Rule rule;
  bool has_velocity;
};

Update update(const OpView& op) {
  return {{op, DensePairs::of_update}, sgd::Rule(op), op.has_operand(2)};
}

void run_update(const KernelCall& call, const Update& s) {
  s.run(call, Step{.rule = s.rule,
                   .rate = call.in<float>(1),
                   .states = sgd::States(call, {.velocity = 2}, s.has_velocity)});
}

/// Rows, columns and terms of a product.
struct Extents {
  double rows, columns, depth;

  /// Whether tiles count so few elements.
  graph::Support fit() const {
    constexpr double most = 1 << 30;
    if (rows * columns < most && rows * depth < most && columns * depth < most) return {};
    return "sizes of 2^30 or more";
  }
  graph::Support small() const { return cuda::worth_tiles(2 * rows * columns * depth); }
};

template <class Layer>
Extents extents(const OpView& op) {
  const Layer s(op);
  return {static_cast<double>(s.n), static_cast<double>(s.i), static_cast<double>(s.o)};
}

template <std::size_t first_pair>
Extents extents_of_pair(const OpView& op) {
  const DensePairs pairs(op, first_pair);
  return {static_cast<double>(pairs.inputs), static_cast<double>(pairs.outputs),
          static_cast<double>(pairs.samples[0])};
}

template <Extents (*of)(const OpView&)>
graph::Support fits(const OpView& op) {
  const graph::Support plain = cuda::is_plain(op, 16);
  return plain ? of(op).fit() : plain;
}

template <std::size_t first_pair>
graph::Support fits_pair(const OpView& op) {
  if (DensePairs(op, first_pair).samples.size() != 1) return "a sum over several pairs";
  return fits<extents_of_pair<first_pair>>(op);
}

/// "tiled", which takes small products, and beside it the tiles by name, which take all that fit.
template <auto build, auto run>
void add(runtime::KernelTable& kernels, const std::string& op,
         graph::Support (*takes)(const OpView&), Extents (*size)(const OpView&)) {
  const auto supports = [=](const OpView& view) -> graph::Support {
    const graph::Support fit = takes(view);
    return fit ? size(view).small() : fit;
  };
  kernels.add(op, cuda::own("tiled", supports, prepare<build, run>, cuda::workspace_of<build>));
  cuda::add_tilings<build, run>(kernels, op, takes);
}

}  // namespace

void ARENITE_TILED_KERNELS(dense)(runtime::KernelTable& kernels) {
  for (const char* op : {"dense", "dense_relu"}) {
    constexpr auto size = extents<DenseForward>;
    add<forward, run_forward>(kernels, op, fits<size>, size);
  }
  for (const char* op : {"dense_grad_input", "dense_grad_input_relu"}) {
    constexpr auto size = extents<DenseGradInput>;
    add<grad_input, run_grad_input>(kernels, op, fits<size>, size);
  }
  add<grad_weight, run_grad_weight>(kernels, "dense_grad_weight", fits_pair<0>, extents_of_pair<0>);
  constexpr std::size_t of_update = DensePairs::of_update;
  add<update, run_update>(kernels, "dense_grad_weight_sgd", fits_pair<of_update>,
                          extents_of_pair<of_update>);
}

}  // namespace arenite::codelets
