// Kernels that are loops, as functions that CUDA's streams call: they compute on CUDA's stand-in
// where that is not told to run what nvcc compiled.
#pragma once

#include <arenite/operators.hpp>
#include <arenite/runtime/kernel.hpp>

#include <cuda_runtime_api.h>

#include "codelets/cuda/libraries.hpp"
#include "tests/grids_as_loops.hpp"

#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace arenite::testing {

/// A call for a stream to make: it, or a recording, may make it at any time later.
struct EnqueuedCall {
  runtime::KernelFunction run = nullptr;
  runtime::KernelCall call;

  static void make(void* argument) {
    const auto& one = *static_cast<const EnqueuedCall*>(argument);
    one.run(one.call);
  }
};

/// Makes it at once where there is no stream.
inline void enqueue_loop(const runtime::KernelCall& call, const runtime::PreparedKernel& loop) {
  static std::mutex mutex;
  static std::deque<EnqueuedCall> kept;
  EnqueuedCall one{.run = loop.run, .call = call};
  one.call.state = loop.state.get();
  if (call.stream == nullptr) {
    EnqueuedCall::make(&one);
    return;
  }
  EnqueuedCall* later = nullptr;
  {
    const std::lock_guard lock(mutex);
    later = &kept.emplace_back(one);
  }
  const auto stream = static_cast<cudaStream_t>(call.stream);
  if (const cudaError_t error = cudaLaunchHostFunc(stream, EnqueuedCall::make, later);
      error != cudaSuccess)
    codelets::cuda::note_failure("cudaLaunchHostFunc", error);
}

inline runtime::Kernel enqueued(runtime::Kernel kernel) {
  kernel.prepare = [prepare = std::move(kernel.prepare)](const graph::OpView& op) {
    return runtime::prepared<enqueue_loop>(prepare(op));
  };
  return kernel;
}

/// In the place of all kernels for GPUs.
inline void put_loops_in_streams(runtime::KernelTable& table) {
  runtime::KernelTable loops, made;
  add_grids_as_loops(loops);
  made.on_devices = table.on_devices;
  made.of_formulas = table.of_formulas;
  for (const std::string& op : operators().names()) {
    for (const runtime::Kernel& kernel : table.find(op)) {
      if (kernel.device == DeviceKind::cpu) made.add(op, kernel);
    }
    for (const runtime::Kernel& kernel : loops.find(op)) made.add(op, enqueued(kernel));
  }
  table = std::move(made);
}

}  // namespace arenite::testing
