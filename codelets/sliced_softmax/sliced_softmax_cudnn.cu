// Softmax of whole rows by cuDNN. It says of the gradient only, and of no other operand, that the
// result may lie in its place: what does is copied first.
#include "codelets/cuda/cudnn.hpp"
#include "codelets/cuda/layouts.hpp"
#include "codelets/image.hpp"
#include "codelets/last_axis.hpp"

namespace arenite::codelets {
namespace {

using runtime::Compute;

constexpr std::int64_t most_rows = 65535;  ///< an axis of a grid
constexpr float one = 1, zero = 0;

cudnnStatus_t softmax(cudnnHandle_t handle, cudnnTensorDescriptor_t rows, const float* x,
                      float* y) {
  return cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                             rows, x, &zero, rows, y);
}

cudnnStatus_t gradient_of(cudnnHandle_t handle, cudnnTensorDescriptor_t rows, const float* y,
                          const float* dy, float* dx) {
  return cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                              rows, y, rows, dy, &zero, rows, dx);
}

/// Rows [rows, length], and a copy of them in the workspace.
struct Rows {
  LastAxis axis;
  cuda::Owned<cudnnTensorDescriptor_t> tensor{nullptr, cudnnDestroyTensorDescriptor};
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;

  Rows(const OpView& op, Compute /*multiplies nothing*/) : axis(op.operand(0).shape) {
    // A part of a row only is for our own.
    const bool whole = op.op().name() == "softmax" || op.integer("prefix") == axis.length;
    if (!whole || axis.rows > most_rows || !cuda::fits_int(count())) return;
    cuda::FirstFailure<cudnnStatus_t> calls;
    calls << cuda::make(cudnnCreateTensorDescriptor, tensor);
    if (calls.good()) {
      calls << cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                          static_cast<int>(axis.rows),
                                          static_cast<int>(axis.length), 1, 1);
    }
    status = calls.status();
    if (!usable()) return;
    static cuda::Answers<std::pair<std::int64_t, std::int64_t>, cudnnStatus_t> answers;
    status = answers.get({axis.rows, axis.length}, [&] { return try_out(); });
  }

  cudnnStatus_t try_out() const {
    cuda::Scratch places;
    const std::int64_t first = places.add(workspace()), second = places.add(workspace()),
                       third = places.add(workspace());
    return cuda::try_once(places.bytes(), [&](cudnnHandle_t handle, void* memory) {
      auto *x = cuda::at<float>(memory, first), *y = cuda::at<float>(memory, second);
      cuda::FirstFailure<cudnnStatus_t> calls;
      calls << softmax(handle, tensor.get(), x, y)
            << gradient_of(handle, tensor.get(), y, x, cuda::at<float>(memory, third));
      return calls.status();
    });
  }

  bool usable() const noexcept { return status == CUDNN_STATUS_SUCCESS; }
  void expect_usable() const { cuda::expect_success(status, "describing rows to cuDNN"); }
  std::int64_t count() const noexcept { return axis.rows * axis.length; }
  std::int64_t workspace() const noexcept { return count() * float_bytes; }

  /// An operand, or a copy of one that the result overwrites.
  const float* apart(const KernelCall& call, std::size_t operand) const {
    const float* x = call.in<float>(operand);
    if (x != call.out<float>(0)) return x;
    auto* copy = static_cast<float*>(call.workspace);
    cuda::copy_rows<cuda::Unchanged>(call, 1, count(), count(), x, copy);
    return copy;
  }
};

void run_softmax(const KernelCall& call) {
  const auto& s = *static_cast<const Rows*>(call.state);
  const float* x = s.apart(call, 0);
  cuda::on_stream(call, "cudnnSoftmaxForward", [&](cudnnHandle_t handle) {
    return softmax(handle, s.tensor.get(), x, call.out<float>(0));
  });
}

void run_grad(const KernelCall& call) {
  const auto& s = *static_cast<const Rows*>(call.state);
  const float *gradient = call.in<float>(0), *y = s.apart(call, 1);
  cuda::on_stream(call, "cudnnSoftmaxBackward", [&](cudnnHandle_t handle) {
    return gradient_of(handle, s.tensor.get(), y, gradient, call.out<float>(0));
  });
}

}  // namespace

void register_sliced_softmax_cudnn(runtime::KernelTable& kernels) {
  constexpr int aligned = cuda::cudnn_alignment;
  const auto forward = cuda::library_kernel<Rows, run_softmax, aligned>("cudnn", Compute::float32);
  kernels.add("softmax", forward);
  kernels.add("sliced_softmax", forward);
  kernels.add("sliced_softmax_grad",
              cuda::library_kernel<Rows, run_grad, aligned>("cudnn", Compute::float32));
}

}  // namespace arenite::codelets
