// A kernel: code for one operator on one kind of worker.
//
// Preparing happens once, while a program is built (JIT compilation, tables of offsets; may
// allocate). Running happens every step, on a StarPU worker, with addresses from the plan: it must
// not allocate, lock, or touch anything but its arguments. A prepared kernel may run on several
// workers at once.
#pragma once

#include <arenite/graph/operator.hpp>
#include <arenite/graph/support.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace arenite::runtime {

/// What a step can only find out while running (an index out of range, a loop's trip count) is
/// written here by the task, lowest op wins; the host reads it after the wait. 0 means all is well.
class StatusWord {
 public:
  static constexpr std::uint64_t ok = 0;

  void report(std::uint32_t op, std::uint32_t code) noexcept;
  std::uint64_t load() const noexcept { return word_.load(std::memory_order_acquire); }
  void clear() noexcept { word_.store(ok, std::memory_order_release); }
  static std::uint32_t op_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 32) - 1;
  }
  static std::uint32_t code_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word);
  }

 private:
  std::atomic<std::uint64_t> word_{ok};
};

/// Arguments of one execution. Addresses are in the op's space and stay the same for a task set.
struct KernelCall {
  void* const* operands = nullptr;  ///< nullptr for an absent optional operand
  void* const* results = nullptr;
  void* workspace = nullptr;    ///< as many bytes as the kernel asked for, aligned to 256
  const void* state = nullptr;  ///< what `prepare` returned
  StatusWord* status = nullptr;
  std::uint32_t op = 0;    ///< for status reports
  void* stream = nullptr;  ///< cudaStream_t on CUDA workers
  /// Of an op on a device that writes persistent state: it leaves that alone once `status` or this
  /// word, which tells of earlier steps, is set. Both lie in the device's memory. Else nullptr.
  const StatusWord* failed = nullptr;

  template <class T>
  const T* in(std::size_t i) const noexcept {
    return static_cast<const T*>(operands[i]);
  }
  template <class T>
  T* out(std::size_t i) const noexcept {
    return static_cast<T*>(results[i]);
  }
  /// On the host: a result that begins as what the operand holds, so many elements, and is then
  /// changed. In place it is there already.
  template <class T>
  T* renewed(std::size_t result, std::size_t operand, std::int64_t count) const noexcept {
    if (results[result] != operands[operand])
      std::memcpy(results[result], operands[operand], static_cast<std::size_t>(count) * sizeof(T));
    return out<T>(result);
  }
};

using KernelFunction = void (*)(const KernelCall&);

/// A kernel made ready for one op: bare function pointer and its immutable state.
struct PreparedKernel {
  KernelFunction run = nullptr;
  std::shared_ptr<const void> state;
};

/// `run`, which takes the state besides, as a KernelFunction.
template <auto run, class State>
void on_state(const KernelCall& call) {
  run(call, *static_cast<const State*>(call.state));
}

/// A kernel that calls `run` with this state.
template <auto run, class State>
PreparedKernel prepared(State state) {
  static_assert(std::is_convertible_v<decltype(run), void (*)(const KernelCall&, const State&)>,
                "`run` has to be a void(const KernelCall&, const State&), of the prepared state");
  return {on_state<run, State>, std::make_shared<const State>(std::move(state))};
}

/// A `Kernel::prepare`: a kernel that calls `run` with what `build` makes of the op.
template <auto build, auto run>
PreparedKernel prepare(const graph::OpView& op) {
  return prepared<run>(build(op));
}

/// What ops that multiply matrices do with their float32 operands. Values, parameters and the
/// optimizer's state are float32 either way.
enum class Compute : std::uint8_t {
  float32,   ///< multiply them as they are
  bfloat16,  ///< round them to bfloat16, to the nearest and ties to even; sums stay float32
  tfloat32,  ///< let a GPU's tensor cores round them to TF32's 10 bits; sums stay float32
};

std::string_view to_string(Compute compute) noexcept;

/// One way of running an operator. `select` takes the first that supports the op on the device,
/// in registration order: register the fastest first and a plain one last. Where an operator has
/// kernels for another Compute than float32, programs for that take those and, on the CPU, no
/// other; on a GPU a float32 one where none of them supports the op.
struct Kernel {
  std::string name;  ///< "xsmm", "plain", "cudnn"
  DeviceKind device = DeviceKind::cpu;
  Compute compute = Compute::float32;
  bool jit = false;  ///< invisible to sanitizers: not selected in ARENITE_PLAIN_KERNELS builds
  std::function<graph::Support(const graph::OpView&)> supports;  ///< absent: always
  std::function<std::int64_t(const graph::OpView&)> workspace;   ///< bytes; absent: 0
  std::function<PreparedKernel(const graph::OpView&)> prepare;
  /// Halo that this kernel would like on operand i; 0: any will do, and its bytes are not read; -1:
  /// the operand must have none. Absent: -1 for all. A kernel that wishes for a halo must still run
  /// without one (it may ask for workspace instead).
  std::function<int(const graph::OpView&, std::size_t)> wanted_halo;
  bool writes_halo = false;  ///< writes the zeros of a halo around its results
  /// On a device: writes what the op's operands hold as KernelCall::failed says. Ops that write
  /// persistent state there are given no other kernel. (On the CPU the caller looks first.)
  bool guards_state = false;
  /// Taken only by ops that KernelChoices gives it to: a variant that somebody has to measure
  /// first.
  bool only_chosen = false;
  /// On a device: of ops that may run side by side, no two have such kernels. Those on a library
  /// share its handle, which may have memory of its own.
  bool exclusive = false;
};

/// What the kernels of a table need on devices.
struct DeviceHooks {
  /// Called on each thread that runs kernels there, with its device current, before any of them.
  /// Throws Error.
  std::function<void()> warm_up;
  /// What could not be launched since the last call; empty: nothing.
  std::function<std::string()> take_failure;
};

class KernelTable {
 public:
  DeviceHooks on_devices;

  void add(std::string_view op,
           Kernel kernel);  ///< throws Error on a second kernel of that name and device
  const std::vector<Kernel>& find(std::string_view op) const noexcept;
  /// Those of its operator, or, where that is a formula that somebody wrote, of `of_formulas`.
  const std::vector<Kernel>& find(const graph::Op& op) const noexcept;
  /// The named kernel; throws Error when there is none.
  const Kernel& at(std::string_view op, std::string_view kernel, DeviceKind device) const;
  const Kernel& at(const graph::Op& op, std::string_view kernel, DeviceKind device) const;

  std::string of_formulas;  ///< the operator whose kernels do any formula

 private:
  std::map<std::string, std::vector<Kernel>, std::less<>> kernels_;
};

}  // namespace arenite::runtime
