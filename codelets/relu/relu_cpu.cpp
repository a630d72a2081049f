#include "codelets/rectify.hpp"
#include "codelets/rows.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run_relu(const KernelCall& call) {
  const auto& state = *static_cast<const ElementRows*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    rectify(call.in<T>(0) + state.first.at(r), length, call.out<T>(0) + state.out.at(r));
  }
  state.out.zero_halo(call.out<T>(0));
}

template <class T>
void run_relu_grad(const KernelCall& call) {
  const auto& state = *static_cast<const ElementRows*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    rectify_gradient(call.in<T>(1) + state.last.at(r), call.in<T>(0) + state.first.at(r), length,
                     call.out<T>(0) + state.out.at(r));
  }
  state.out.zero_halo(call.out<T>(0));
}

}  // namespace

std::vector<Kernel> relu_kernels() { return {elementwise<run_relu<float>, run_relu<double>>()}; }
std::vector<Kernel> relu_grad_kernels() {
  return {elementwise<run_relu_grad<float>, run_relu_grad<double>>()};
}

}  // namespace arenite::codelets
