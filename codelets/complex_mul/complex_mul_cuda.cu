// Numbers are pairs of elements along the last axis.
#include "codelets/cuda/offsets.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets {
namespace {

struct Product {
  cuda::Offsets in_b;  ///< of a's numbers, in b's numbers
  std::int64_t numbers = 0;
  bool conjugate = false;
};

Product product_of(const OpView& op) {
  const Shape &a = op.operand(0).shape, &b = op.operand(1).shape;
  Product made{.numbers = a.elements() / 2, .conjugate = op.integer("conjugate") != 0};
  std::array<std::int64_t, Shape::max_rank> step{};
  std::int64_t next = 1;
  for (int i = b.rank() - 2; i >= 0; next *= b[i], --i)
    step[static_cast<std::size_t>(i)] = b[i] == 1 ? 0 : next;
  for (int i = 0; i + 1 < a.rank(); ++i) made.in_b.add(a[i], step[static_cast<std::size_t>(i)]);
  return made;
}

template <class T>
void run_mul(const KernelCall& call, const Product& p) {
  const T *a = call.in<T>(0), *b = call.in<T>(1);
  T* y = call.out<T>(0);
  const T sign = p.conjugate ? -1 : 1;
  cuda::for_each(call, p.numbers, [=] ARENITE_THREAD(std::int64_t i) {
    const T* factor = b + 2 * p.in_b.at(i);
    const T real = factor[0], imaginary = sign * factor[1];
    const T a_real = a[2 * i], a_imaginary = a[2 * i + 1];  // y may lie in a's place
    y[2 * i] = a_real * real - a_imaginary * imaginary;
    y[2 * i + 1] = a_real * imaginary + a_imaginary * real;
  });
}

struct Gradient {
  cuda::Offsets sums, terms;  ///< in a, of numbers: a sum for each of b
  cuda::Chunks chunks;        ///< real and imaginary parts
  double conjugate = 1;       ///< −1: of the conjugates

  std::int64_t workspace() const { return chunks.workspace(); }
};

/// Σ g · conj(a); with conjugate=1, Σ conj(g) · a: the conjugate of the former.
Gradient gradient_of(const OpView& op) {
  const Shape &a = op.operand(0).shape, &b = op.result(0).shape;
  Gradient made{.conjugate = op.integer("conjugate") != 0 ? -1.0 : 1.0};
  std::array<std::int64_t, Shape::max_rank> step{};
  std::int64_t next = 1;
  for (int i = a.rank() - 2; i >= 0; next *= a[i], --i) step[static_cast<std::size_t>(i)] = next;
  for (int i = 0; i + 1 < a.rank(); ++i) {
    (a[i] == b[i] ? made.sums : made.terms).add(a[i], step[static_cast<std::size_t>(i)]);
  }
  made.chunks = cuda::Chunks(2 * made.sums.count(), made.terms.count());
  return made;
}

template <class T>
void run_grad_right(const KernelCall& call, const Gradient& state) {
  const cuda::Offsets sums = state.sums, terms = state.terms;
  const T *gradient = call.in<T>(0), *a = call.in<T>(1);
  T* db = call.out<T>(0);
  const double sign = state.conjugate;
  cuda::sum_chunks(
      call, state.chunks,
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t t) {
        const std::int64_t at = 2 * (sums.at(i / 2) + terms.at(t));
        const double g_real = static_cast<double>(gradient[at]),
                     g_imaginary = static_cast<double>(gradient[at + 1]),
                     a_real = static_cast<double>(a[at]),
                     a_imaginary = static_cast<double>(a[at + 1]);
        return i % 2 == 0 ? g_real * a_real + g_imaginary * a_imaginary
                          : sign * (g_imaginary * a_real - g_real * a_imaginary);
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) { db[i] = static_cast<T>(total); });
}

}  // namespace

void ARENITE_CUDA_KERNELS(complex_mul)(runtime::KernelTable& kernels) {
  kernels.add("complex_mul", cuda::own(prepare_real<product_of, run_mul<float>, run_mul<double>>));
  kernels.add("complex_mul_grad_right",
              cuda::own(prepare_real<gradient_of, run_grad_right<float>, run_grad_right<double>>,
                        cuda::workspace_of<gradient_of>));
}

}  // namespace arenite::codelets
