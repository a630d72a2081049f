#include "codelets/cuda/cudnn.hpp"

#include "codelets/cuda/layouts.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace arenite::codelets::cuda {
namespace {

using runtime::Compute;

/// Scratch that an algorithm may ask for: the plan counts it. On Hopper the exact ones copy x, the
/// weight and y to another layout, all of them.
std::size_t most_workspace(const ConvolutionSizes& s) {
  constexpr std::int64_t always = std::int64_t{64} << 20;
  const std::int64_t copies = (s.image() + s.weights() + s.result()) * float_bytes;
  return static_cast<std::size_t>(std::max(always, copies + copies / 4));
}

constexpr float one = 1, zero = 0;

/// cuDNN takes sizes, and indexes elements, in int.
bool in_reach(const ConvolutionSizes& s) {
  constexpr double most = std::numeric_limits<int>::max();
  const auto product = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
  for (const std::int64_t size :
       {s.n, s.h, s.w, s.channels, s.rows, s.columns, s.outputs, s.kernel_h, s.kernel_w, s.stride_h,
        s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w}) {
    if (!fits_int(size)) return false;
  }
  return product(s.n, s.h, s.w, s.channels) <= most &&
         product(s.n, s.rows, s.columns, s.outputs) <= most &&
         product(s.kernel_h, s.kernel_w, s.channels, s.outputs) <= most;
}

using Calls = FirstFailure<cudnnStatus_t>;

const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "cudnnConvolutionForward";
    case Direction::input_gradient:
      return "cudnnConvolutionBackwardData";
    case Direction::weight_gradient:
      return "cudnnConvolutionBackwardFilter";
  }
  return "cuDNN";
}

int narrow(std::int64_t size) { return static_cast<int>(size); }

}  // namespace

cudnnStatus_t find_handle(cudnnHandle_t& handle) noexcept {
  return ThreadHandles<cudnnHandle_t, cudnnCreate>::find(handle);
}

ConvolutionSizes::ConvolutionSizes(const Image& x, const Window& window, std::int64_t all_outputs,
                                   Direction of_direction, Compute in, int of_place)
    : n(x.n),
      h(x.h),
      w(x.w),
      channels(x.c),
      outputs(all_outputs),
      kernel_h(window.kernel.h),
      kernel_w(window.kernel.w),
      stride_h(window.stride.h),
      stride_w(window.stride.w),
      padding_h(window.padding.h),
      padding_w(window.padding.w),
      dilation_h(window.dilation.h),
      dilation_w(window.dilation.w),
      direction(of_direction),
      compute(in),
      place(of_place) {
  const Pair size = window.output({x.h, x.w});
  rows = size.h;
  columns = size.w;
}

Convolution::Convolution(const ConvolutionSizes& sizes) : sizes_(sizes) {
  if (!in_reach(sizes)) return;
  choice_.status = describe();
  if (!usable()) return;
  static Answers<ConvolutionSizes, Choice> answers;
  choice_ = answers.get(sizes, [&] { return ask(); });
  if (!usable()) return;
  choice_.status = cudnnSetConvolutionMathType(window_.get(), choice_.math);
  filter_ = scratch_.add(sizes.weights() * float_bytes);
  own_scratch_ = scratch_.add(choice_.workspace);
  if (!rounds()) return;
  rounded_first_ = scratch_.add(first_count() * float_bytes);
  if (sizes.direction == Direction::weight_gradient)
    rounded_second_ = scratch_.add(sizes.result() * float_bytes);
}

cudnnStatus_t Convolution::describe() {
  const ConvolutionSizes& s = sizes_;
  Calls calls;
  calls << make(cudnnCreateTensorDescriptor, x_) << make(cudnnCreateTensorDescriptor, y_)
        << make(cudnnCreateFilterDescriptor, weight_)
        << make(cudnnCreateConvolutionDescriptor, window_);
  if (!calls.good()) return calls.status();
  const auto tensor = [](auto& descriptor, std::int64_t n, std::int64_t h, std::int64_t w,
                         std::int64_t c) {
    return cudnnSetTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT,
                                      narrow(n), narrow(c), narrow(h), narrow(w));
  };
  calls << tensor(x_, s.n, s.h, s.w, s.channels) << tensor(y_, s.n, s.rows, s.columns, s.outputs)
        << cudnnSetFilter4dDescriptor(weight_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC,
                                      narrow(s.outputs), narrow(s.channels), narrow(s.kernel_h),
                                      narrow(s.kernel_w))
        << cudnnSetConvolution2dDescriptor(window_.get(), narrow(s.padding_h), narrow(s.padding_w),
                                           narrow(s.stride_h), narrow(s.stride_w),
                                           narrow(s.dilation_h), narrow(s.dilation_w),
                                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)
        << cudnnSetConvolutionMathType(window_.get(), CUDNN_FMA_MATH);
  return calls.status();
}

/// Of those that the library ranks by its estimate of their speed that give the same bits each
/// time, need no more scratch than that, and multiply what they are to multiply, and behind them of
/// those of `always` that can, the one at its place. The convolution takes its descriptors in this
/// order.
template <class Perf, auto heuristics, auto workspace_of, class Algorithm, class... Descriptors>
Convolution::Choice Convolution::ask_of(cudnnHandle_t handle,
                                        std::initializer_list<Algorithm> always,
                                        const Descriptors&... descriptors) const {
  struct Candidate {
    Algorithm algorithm;
    cudnnMathType_t math;
    std::size_t most;  // bytes of scratch
  };
  std::array<Perf, 16> found{};
  int count = 0;
  // The default lets tensor cores round to TF32.
  const bool exact = sizes_.compute == Compute::float32;
  const cudnnMathType_t asked = exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
  Calls ranking;
  ranking << cudnnSetConvolutionMathType(window_.get(), asked)
          << heuristics(handle, descriptors.get()..., static_cast<int>(found.size()), &count,
                        found.data());
  std::vector<Candidate> candidates;
  for (int i = 0; ranking.good() && i < count; ++i) {
    const Perf& perf = found.at(static_cast<std::size_t>(i));
    if (perf.status != CUDNN_STATUS_SUCCESS || perf.determinism != CUDNN_DETERMINISTIC) continue;
    // This one lets them round to half precision.
    if (perf.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) continue;
    if (exact && perf.mathType == CUDNN_TENSOR_OP_MATH) continue;
    candidates.push_back(
        {perf.algo, exact ? CUDNN_FMA_MATH : perf.mathType, most_workspace(sizes_)});
  }
  // Whatever these ask for: a thread an element, which is left, would take far longer.
  for (const Algorithm algorithm : always)
    candidates.push_back({algorithm, asked, std::numeric_limits<std::size_t>::max()});

  std::vector<Candidate> able;
  Choice refused;
  for (const Candidate& candidate : candidates) {
    const bool known = std::ranges::any_of(able, [&](const Candidate& one) {
      return one.algorithm == candidate.algorithm && one.math == candidate.math;
    });
    if (known) continue;
    Choice choice{.algorithm = static_cast<int>(candidate.algorithm), .math = candidate.math};
    std::size_t bytes = 0;
    Calls calls;
    calls << cudnnSetConvolutionMathType(window_.get(), candidate.math)
          << workspace_of(handle, descriptors.get()..., candidate.algorithm, &bytes);
    choice.status = bytes <= candidate.most ? calls.status() : CUDNN_STATUS_NOT_SUPPORTED;
    choice.workspace = static_cast<std::int64_t>(bytes);
    if (choice.status == CUDNN_STATUS_SUCCESS) choice.status = try_out(choice);
    if (choice.status != CUDNN_STATUS_SUCCESS) {
      refused.status = choice.status;
      continue;
    }
    able.push_back(candidate);
    if (able.size() > static_cast<std::size_t>(sizes_.place)) return choice;
  }
  return refused;
}

Convolution::Choice Convolution::ask() const {
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = find_handle(handle); status != CUDNN_STATUS_SUCCESS)
    return {.status = status};
  switch (sizes_.direction) {
    case Direction::forward:
      return ask_of<cudnnConvolutionFwdAlgoPerf_t, cudnnGetConvolutionForwardAlgorithm_v7,
                    cudnnGetConvolutionForwardWorkspaceSize>(
          handle,
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
           CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
          x_, weight_, window_, y_);
    case Direction::input_gradient:
      return ask_of<cudnnConvolutionBwdDataAlgoPerf_t, cudnnGetConvolutionBackwardDataAlgorithm_v7,
                    cudnnGetConvolutionBackwardDataWorkspaceSize>(
          handle, {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}, weight_, y_, window_, x_);
    case Direction::weight_gradient:
      return ask_of<cudnnConvolutionBwdFilterAlgoPerf_t,
                    cudnnGetConvolutionBackwardFilterAlgorithm_v7,
                    cudnnGetConvolutionBackwardFilterWorkspaceSize>(
          handle, {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}, x_, y_, window_, weight_);
  }
  return {};
}

cudnnStatus_t Convolution::try_out(const Choice& choice) const {
  Scratch places;
  const std::int64_t x = places.add(sizes_.image() * float_bytes),
                     y = places.add(sizes_.result() * float_bytes),
                     filter = places.add(sizes_.weights() * float_bytes),
                     scratch = places.add(choice.workspace);
  const std::int64_t first = sizes_.direction == Direction::input_gradient ? y : x,
                     second = sizes_.direction == Direction::weight_gradient ? y : filter;
  std::int64_t to = y;
  if (sizes_.direction == Direction::input_gradient) to = x;
  if (sizes_.direction == Direction::weight_gradient) to = filter;
  return try_once(places.bytes(), [&](cudnnHandle_t handle, void* memory) {
    return convolve(handle, choice, at<float>(memory, first), at<float>(memory, second),
                    at<float>(memory, to), at<void>(memory, scratch));
  });
}

cudnnStatus_t Convolution::convolve(cudnnHandle_t handle, const Choice& choice, const float* first,
                                    const float* second, float* to, void* scratch) const noexcept {
  const auto bytes = static_cast<std::size_t>(choice.workspace);
  switch (sizes_.direction) {
    case Direction::forward:
      return cudnnConvolutionForward(handle, &one, x_.get(), first, weight_.get(), second,
                                     window_.get(),
                                     static_cast<cudnnConvolutionFwdAlgo_t>(choice.algorithm),
                                     scratch, bytes, &zero, y_.get(), to);
    case Direction::input_gradient:
      return cudnnConvolutionBackwardData(
          handle, &one, weight_.get(), second, y_.get(), first, window_.get(),
          static_cast<cudnnConvolutionBwdDataAlgo_t>(choice.algorithm), scratch, bytes, &zero,
          x_.get(), to);
    case Direction::weight_gradient:
      return cudnnConvolutionBackwardFilter(
          handle, &one, x_.get(), first, y_.get(), second, window_.get(),
          static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice.algorithm), scratch, bytes, &zero,
          weight_.get(), to);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

void Convolution::run(const KernelCall& call, void* workspace, const float* first,
                      const float* second, float* to) const noexcept {
  auto* filter = at<float>(workspace, filter_);
  void* scratch = at<void>(workspace, own_scratch_);
  const bool from_weight = sizes_.direction != Direction::weight_gradient;
  const auto round = [&](const float* from, std::int64_t count, std::int64_t offset) {
    auto* rounded = at<float>(workspace, offset);
    copy_rows<RoundedToBfloat16>(call, 1, count, count, from, rounded);
    return rounded;
  };
  if (rounds()) first = round(first, first_count(), rounded_first_);
  if (rounds() && !from_weight) second = round(second, sizes_.result(), rounded_second_);
  if (rounds() && from_weight) {
    transpose<RoundedToBfloat16>(call, sizes_.weight_rows(), sizes_.outputs, second, filter);
  } else if (from_weight) {
    transpose<Unchanged>(call, sizes_.weight_rows(), sizes_.outputs, second, filter);
  }
  const bool done = on_stream(call, name_of(sizes_.direction), [&](cudnnHandle_t handle) {
    return convolve(handle, choice_, first, from_weight ? filter : second,
                    from_weight ? to : filter, scratch);
  });
  if (done && !from_weight)
    transpose<Unchanged>(call, sizes_.outputs, sizes_.weight_rows(), filter, to);
}

}  // namespace arenite::codelets::cuda
