#include "codelets/prepare.hpp"
#include "codelets/rectify.hpp"
#include "codelets/rows.hpp"

namespace arenite::codelets {
namespace {

/// Where the runs of x (or of the gradient), of the result and of the output lie.
struct State {
  Rows in, out, output;
};

template <class T>
void run_relu(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    rectify(call.in<T>(0) + state.in.at(r), length, call.out<T>(0) + state.out.at(r));
  }
  state.out.zero_halo(call.out<T>(0));
}

template <class T>
void run_relu_grad(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    rectify_gradient(call.in<T>(1) + state.output.at(r), call.in<T>(0) + state.in.at(r), length,
                     call.out<T>(0) + state.out.at(r));
  }
  state.out.zero_halo(call.out<T>(0));
}

runtime::PreparedKernel prepare(const graph::OpView& op, runtime::KernelFunction run) {
  const graph::Value &in = op.operand(0), &output = op.operand(op.operand_count() - 1),
                     &out = op.result(0);
  const bool by_row = any_halo({&in, &out, &output});
  return {run, std::make_shared<const State>(
                   State{Rows(in, by_row), Rows(out, by_row), Rows(output, by_row)})};
}

runtime::Kernel plain(runtime::KernelFunction of_floats, runtime::KernelFunction of_doubles) {
  return {.name = "plain",
          .prepare =
              [=](const graph::OpView& op) {
                return prepare(op, op.result(0).type == DType::float64 ? of_doubles : of_floats);
              },
          .wanted_halo = [](const graph::OpView&, std::size_t) { return 0; },
          .writes_halo = true};
}

}  // namespace

std::vector<runtime::Kernel> relu_kernels() { return {plain(run_relu<float>, run_relu<double>)}; }
std::vector<runtime::Kernel> relu_grad_kernels() {
  return {plain(run_relu_grad<float>, run_relu_grad<double>)};
}

}  // namespace arenite::codelets
