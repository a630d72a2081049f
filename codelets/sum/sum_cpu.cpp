#include "codelets/rows.hpp"
#include "codelets/words.hpp"
#include "src/base/element.hpp"
#include "src/base/sum_tree.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::vector<Rows> terms;
  Rows out;
};

template <class T>
T add(T a, T b) noexcept {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

/// Elements summed at a time: partial sums stay in the first-level cache.
constexpr std::int64_t block = 256;

/// Adds terms [from, to) of one block: out[i] = tree(from, middle) + tree(middle, to). The depth is
/// the logarithm of the number of terms. `address(t)` is where term t's block begins. `out` may be
/// a term's block only when there are at most four terms: those are read before the sum is written.
template <class T, class Address>
void tree(const Address& address, std::size_t from, std::size_t to, std::int64_t n,
          T* out) noexcept {
  const auto term = [&](std::size_t i) { return address(std::min(from + i, to - 1)); };
  const T *a = term(0), *b = term(1), *c = term(2), *d = term(3);
  switch (to - from) {
    case 1:
      if (a != out) std::copy_n(a, n, out);
      return;
    case 2:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) out[i] = add(a[i], b[i]);
      return;
    case 3:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) out[i] = add(a[i], add(b[i], c[i]));
      return;
    case 4:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) out[i] = add(add(a[i], b[i]), add(c[i], d[i]));
      return;
    default:
      break;
  }
  const std::size_t middle = middle_of(from, to);
  T right[block];
  tree(address, from, middle, n, out);
  tree(address, middle, to, n, right);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = add(out[i], right[i]);
}

template <class T>
void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::size_t terms = state.terms.size();
  const std::int64_t length = state.out.length();
  T* result = call.out<T>(0);
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    T* out = result + state.out.at(r);
    for (std::int64_t from = 0; from < length; from += block) {
      const std::int64_t n = std::min(block, length - from);
      const auto address = [&](std::size_t t) {
        return call.in<T>(t) + state.terms[t].at(r) + from;
      };
      if (terms <= 4) {
        tree(address, 0, terms, n, out + from);
        continue;
      }
      // The result may lie on a term, which must stay whole until all of them have been read.
      T sums[block];
      tree(address, 0, terms, n, sums);
      std::copy_n(sums, n, out + from);
    }
  }
  state.out.zero_halo(result);
}

PreparedKernel choose(const OpView& op) {
  bool by_row = any_halo({&op.result(0)});
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    by_row = by_row || any_halo({&op.operand(i)});
  std::vector<Rows> terms;
  for (std::size_t i = 0; i < op.operand_count(); ++i) terms.emplace_back(op.operand(i), by_row);
  auto state = std::make_shared<const State>(State{std::move(terms), Rows(op.result(0), by_row)});
  return {with_element(op.result(0).type, [](auto zero) { return &run<decltype(zero)>; }), state};
}

}  // namespace

std::vector<Kernel> sum_kernels() {
  return {{.name = "plain",
           .prepare = choose,
           .wanted_halo = [](const OpView&, std::size_t) { return 0; },
           .writes_halo = true}};
}

}  // namespace arenite::codelets
