// Convolutions by cuDNN, whose algorithm is chosen when a program is built: the one that the
// library estimates to be the fastest, or, where somebody has measured, the second or third.
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/handles.hpp"
#include "codelets/cuda/libraries.hpp"
#include "codelets/cuda/library_kernel.hpp"

#include <cudnn.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace arenite::codelets::cuda {

/// This thread's handle for its current device, made where there is none yet.
cudnnStatus_t find_handle(cudnnHandle_t& handle) noexcept;

/// Throws Error unless the call of a library went well.
inline void expect_success(cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail({.found = what + ": " + cudnnGetErrorString(status), .expected = "success"});
}

/// Bytes that the addresses of its tensors are multiples of. (The library says of none how it finds
/// out about less.)
constexpr int cudnn_alignment = 16;

/// A descriptor, which only `make` makes.
template <class Descriptor>
using Owned = std::unique_ptr<std::remove_pointer_t<Descriptor>, cudnnStatus_t (*)(Descriptor)>;

template <class Descriptor>
cudnnStatus_t make(cudnnStatus_t (*create)(Descriptor*), Owned<Descriptor>& into) {
  Descriptor made = nullptr;
  const cudnnStatus_t status = create(&made);
  if (status == CUDNN_STATUS_SUCCESS) into.reset(made);
  return status;
}

/// Calls f(handle), which enqueues behind what the call's stream holds, and notes a failure.
/// Returns whether there was none.
template <class F>
bool on_stream(const KernelCall& call, const char* what, F f) {
  cudnnHandle_t handle = nullptr;
  FirstFailure<cudnnStatus_t> calls;
  calls << find_handle(handle);
  if (calls.good()) calls << cudnnSetStream(handle, static_cast<cudaStream_t>(call.stream));
  if (calls.good()) calls << f(handle);
  if (!calls.good()) note_failure(what, calls.status(), cudnnGetErrorString(calls.status()));
  return calls.good();
}

/// What f(handle, memory) comes to on so many bytes of the device's memory, when a program is
/// built; success where the device has none left to find out.
template <class F>
cudnnStatus_t try_once(std::int64_t bytes, F f) {
  cudnnHandle_t handle = nullptr;
  FirstFailure<cudnnStatus_t> calls;
  calls << find_handle(handle);
  const Trial trial(bytes);
  if (!calls.good() || !trial.possible()) return calls.status();
  calls << cudnnSetStream(handle, trial.stream());
  if (calls.good()) calls << f(handle, trial.memory());
  if (!trial.ends_well()) calls << CUDNN_STATUS_EXECUTION_FAILED;
  return calls.status();
}

enum class Direction : std::uint8_t { forward, input_gradient, weight_gradient };

/// "cudnn" has the first algorithm that can. In float32 `cudnn.2` and `cudnn.3` have those behind
/// it: programs take them only where they were chosen.
inline std::string cudnn_name(int place) {
  return place == 0 ? "cudnn" : "cudnn." + std::to_string(place + 1);
}
inline constexpr int cudnn_places = 3;

/// What a convolution's algorithm is chosen from.
struct ConvolutionSizes {
  std::int64_t n = 0, h = 0, w = 0, channels = 0;   ///< of x
  std::int64_t rows = 0, columns = 0, outputs = 0;  ///< of y
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  std::int64_t padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1;
  Direction direction = Direction::forward;
  runtime::Compute compute = runtime::Compute::float32;
  int place = 0;  ///< of the algorithm among those that can, as the library ranks them

  ConvolutionSizes() = default;
  /// Of x and a window; y is all that the window gives.
  ConvolutionSizes(const Image& x, const Window& window, std::int64_t outputs, Direction direction,
                   runtime::Compute compute, int place);

  std::int64_t image() const noexcept { return n * h * w * channels; }
  std::int64_t result() const noexcept { return n * rows * columns * outputs; }
  /// Rows of a weight, an operator's [KH, KW, C] · [K].
  std::int64_t weight_rows() const noexcept { return kernel_h * kernel_w * channels; }
  std::int64_t weights() const noexcept { return weight_rows() * outputs; }

  friend auto operator<=>(const ConvolutionSizes&, const ConvolutionSizes&) = default;
};

/// One of a convolution's three directions. x, y and their gradients are [N, H, W, C]; weights are
/// the operators', [KH, KW, C, K], which cuDNN wants as [K, KH, KW, C]: they are transposed in the
/// workspace. Factors that are rounded to bfloat16 stay float32 there: tensor cores multiply such
/// numbers exactly as TF32, and results have all their bits.
class Convolution {
 public:
  explicit Convolution(const ConvolutionSizes& sizes);

  bool usable() const noexcept { return choice_.status == CUDNN_STATUS_SUCCESS; }
  /// Throws Error.
  void expect_usable() const {
    expect_success(choice_.status, "choosing a convolution's algorithm");
  }
  std::int64_t workspace() const noexcept { return scratch_.bytes(); }
  const ConvolutionSizes& sizes() const noexcept { return sizes_; }

  /// From (x, weight) to y, (dy, weight) to dx, or (x, dy) to dweight, as the direction is. The
  /// workspace is the convolution's own part of the call's.
  void run(const KernelCall& call, void* workspace, const float* first, const float* second,
           float* to) const noexcept;

 private:
  struct Choice {
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    int algorithm = 0;  ///< the direction says of which type
    cudnnMathType_t math = CUDNN_FMA_MATH;
    std::int64_t workspace = 0;
  };

  bool rounds() const noexcept { return sizes_.compute == runtime::Compute::bfloat16; }
  std::int64_t first_count() const noexcept {
    return sizes_.direction == Direction::input_gradient ? sizes_.result() : sizes_.image();
  }

  cudnnStatus_t describe();
  cudnnStatus_t try_out(const Choice& choice) const;
  /// As `run`, but with the weight, or its gradient, as cuDNN wants it.
  cudnnStatus_t convolve(cudnnHandle_t handle, const Choice& choice, const float* first,
                         const float* second, float* to, void* scratch) const noexcept;
  Choice ask() const;
  template <class Perf, auto heuristics, auto workspace_of, class Algorithm, class... Descriptors>
  Choice ask_of(cudnnHandle_t handle, std::initializer_list<Algorithm> always,
                const Descriptors&... descriptors) const;

  ConvolutionSizes sizes_;
  Owned<cudnnTensorDescriptor_t> x_{nullptr, cudnnDestroyTensorDescriptor},
      y_{nullptr, cudnnDestroyTensorDescriptor};
  Owned<cudnnFilterDescriptor_t> weight_{nullptr, cudnnDestroyFilterDescriptor};
  Owned<cudnnConvolutionDescriptor_t> window_{nullptr, cudnnDestroyConvolutionDescriptor};
  Choice choice_;
  Scratch scratch_;
  std::int64_t filter_ = 0, own_scratch_ = 0, rounded_first_ = 0, rounded_second_ = 0;  ///< offsets
};

/// The operator's kernels, whose `State` is made of an op, what it computes in, and an algorithm's
/// place.
template <class State, auto run>
void add_convolution(runtime::KernelTable& kernels, std::string_view op) {
  for (const runtime::Compute compute : all_computes) {
    const int places = compute == runtime::Compute::float32 ? cudnn_places : 1;
    for (int place = 0; place < places; ++place) {
      const auto make = [=](const OpView& view) { return State(view, compute, place); };
      auto kernel = library_kernel<run, cudnn_alignment>(cudnn_name(place), compute, make);
      kernel.only_chosen = place > 0;
      kernels.add(op, std::move(kernel));
    }
  }
}

}  // namespace arenite::codelets::cuda
