// What kernels cost on the kind of machine a program is built for: measured once, kept as data.
//
// The number of lanes, the size of tasks, and everything else that orders arithmetic, are decided
// from the network, the batch and a target profile alone, never from a machine's cores or load: the
// same profile gives the same program, and its results the same bits, everywhere. A profile that
// fits a machine badly makes steps slower, not wrong.
#pragma once

#include <arenite/graph/graph.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace arenite::graph {

/// How the names of kernels that multiply bfloat16 end. Without a rate of its own such a kernel has
/// that of the name before, so that both kinds of a program are split alike.
inline constexpr std::string_view bfloat16_suffix = "_bf16";

/// Of one worker. The slower of the two decides what an op takes; one that is not given never does.
struct KernelRate {
  /// 10⁹ operations, and 10⁹ bytes of operands and results, of the definition's cost a second.
  double gflops = std::numeric_limits<double>::infinity();
  double gigabytes = std::numeric_limits<double>::infinity();

  friend bool operator==(const KernelRate&, const KernelRate&) = default;
};

/// How a batch is cut: in shards, whose gradients are complete by themselves and are added in a
/// fixed tree, and each of them in lanes, which may share work. Lane l of shard s is lane
/// s * lanes + l; samples stay in their order.
struct BatchCut {
  int shards = 1;
  int lanes = 1;  ///< of one shard

  int shard_of(int lane) const noexcept { return lane / lanes; }

  friend bool operator==(const BatchCut&, const BatchCut&) = default;
};

/// "2 lanes", "4 shards", "4 shards of 2 lanes, 2 at once" where fewer than all are under way.
std::string to_string(const BatchCut& cut, int at_once);

struct TargetProfile {
  std::string name = "unmeasured";
  using Rates = std::map<std::string, KernelRate, std::less<>>;  ///< by "operator/kernel"
  Rates kernels, gpu_kernels;        ///< on the CPU, and on a GPU, where names may be the same
  KernelRate otherwise{60, 60};      ///< of kernels that are not listed; values stay in caches
  KernelRate on_gpu{15'000, 2'000};  ///< of those on a GPU that are not listed
  double op_microseconds = 0.3;      ///< fixed cost of a kernel call
  double gpu_op_microseconds = 2;    ///< and on a GPU, where tasks are as large as they can be
  double task_microseconds = 15;     ///< ops of a lane are merged into tasks of at least this
  /// Where all ops of a lane and phase take less than this, they are one task.
  double phase_microseconds = 60;
  /// What it costs that lanes wait for each other, and read what another worker has written: what
  /// they share is split where a part takes no less.
  double meeting_microseconds = 4;
  double handover_gigabytes = 15;  ///< a second, of what another worker has written
  /// From how much work of a step on its batch is cut in two lanes, and in four shards instead.
  /// More let more workers help, or need fewer bytes one behind the other; they cost sums of
  /// gradients.
  double two_lanes_microseconds = 60, four_shards_microseconds = 20'000;

  /// What an op is estimated to take, with the kernel that `select` gave it.
  double microseconds(const OpView& op) const;
  /// What a task of all lanes takes at least.
  double shared_task_microseconds() const noexcept {
    return std::min(task_microseconds, meeting_microseconds);
  }
  /// For a step that takes this long with one lane.
  BatchCut cut(double step_microseconds) const noexcept;

  friend bool operator==(const TargetProfile&, const TargetProfile&) = default;
};

/// Microseconds that one worker is estimated to take for the ops of the graph's body, or those that
/// count, with the kernels that `select` gave them. What refills inputs runs ahead, and is left
/// out.
double estimate(const Graph& graph, const TargetProfile& target,
                const std::function<bool(OpId)>& counts = {});

/// Throws Error unless all rates are above 0 and all times at least 0.
void check(const TargetProfile& target);

/// The profile that programs are built for unless another one is given: AVX-512 cores with kernels
/// of this build (bench/NOTES.md says how it was measured).
const TargetProfile& default_target();

}  // namespace arenite::graph
