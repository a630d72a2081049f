// What the registrations of kernels on NVIDIA's libraries share.
//
// Such a kernel has a state, made of an op and what it is to compute in, which knows whether the
// library can do it (`status`: what it said), and how many bytes of scratch that takes.
#pragma once

#include "codelets/cuda/handles.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/plain.hpp"

#include <arenite/graph/target.hpp>

#include <string>
#include <utility>

namespace arenite::codelets::cuda {

/// Places side by side in the workspace, each aligned as the workspace is.
class Scratch {
 public:
  /// The offset of so many bytes behind those before.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t offset = bytes_;
    bytes_ = round_up(bytes_ + bytes, default_alignment);
    return offset;
  }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

template <class T>
T* at(void* workspace, std::int64_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

/// What libraries compute in.
inline constexpr runtime::Compute all_computes[] = {
    runtime::Compute::float32, runtime::Compute::tfloat32, runtime::Compute::bfloat16};

/// What the name of a kernel ends with.
inline std::string_view suffix_of(runtime::Compute compute) noexcept {
  switch (compute) {
    case runtime::Compute::float32:
      return {};
    case runtime::Compute::bfloat16:
      return graph::bfloat16_suffix;
    case runtime::Compute::tfloat32:
      return "_tf32";
  }
  return {};
}

/// A library's kernel. What `make` makes of an op has `usable()`, `workspace()` and
/// `expect_usable()`, which throws what the library said; `run` runs it.
template <auto run, int least_alignment, class Make>
Kernel library_kernel(const std::string& library, runtime::Compute compute, Make make,
                      bool guards_state = false) {
  Kernel kernel;
  kernel.name = library + std::string(suffix_of(compute));
  kernel.device = DeviceKind::cuda;
  kernel.compute = compute;
  kernel.supports = [=](const OpView& op) -> graph::Support {
    if (const graph::Support plain = is_plain(op, least_alignment); !plain) return plain;
    if (!has_device()) return "no GPU for the library to ask";
    if (!make(op).usable()) return "sizes that the library has no code for";
    return {};
  };
  kernel.workspace = [=](const OpView& op) { return make(op).workspace(); };
  kernel.prepare = [=](const OpView& op) {
    auto state = make(op);
    state.expect_usable();
    return prepared<run>(std::move(state));
  };
  kernel.guards_state = guards_state;
  kernel.exclusive = true;
  return kernel;
}

/// The same of a `State` that is made of an op and a Compute.
template <class State, auto run, int least_alignment>
Kernel library_kernel(const std::string& library, runtime::Compute compute,
                      bool guards_state = false) {
  const auto make = [=](const OpView& op) { return State(op, compute); };
  return library_kernel<run, least_alignment>(library, compute, make, guards_state);
}

}  // namespace arenite::codelets::cuda
