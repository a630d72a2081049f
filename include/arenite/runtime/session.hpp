// StarPU and its workers, started once for the process.
//
// A Session is a share of the process's one StarPU: the first starts it, the last stops it. Asking
// for other options while it runs is an error. Sessions may be made and destroyed by any thread.
//
// Within 50 ms of the last step's end the workers go to sleep and cost no processor time, until a
// program's next step wakes them. GPUs are of the session that starts StarPU: programs run on those
// that it named, and nowhere else. Who submits StarPU tasks of his own, past this library, has to
// keep them awake himself: starpu_resume before, starpu_pause behind.
#pragma once

#include <arenite/types.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::runtime {

struct SessionOptions {
  /// CPU workers. 0: those of the session that runs, else as many as $STARPU_NCPU says, else one
  /// for each processor that this process may use (by its affinity, its cpuset and its control
  /// groups), of which each GPU takes one, and at most 2 where programs run on GPUs alone. A number
  /// given here wins over the environment, whatever stands there. Workers are bound to a core each,
  /// and to its other hyperthreads once every core has one.
  int workers = 0;
  /// Where programs run: "cpu"; "cuda" (the first GPU) or "cuda:1"; "auto" (the first GPU, or the
  /// CPU where there is none); or several of them, as "cuda:0+cuda:1" and "cuda+cpu", on which
  /// lanes are dealt out: what lanes share is on the first. Empty: as the session that runs, else
  /// "cpu".
  std::string device;
  /// Bytes that programs may take of each GPU's memory; 0: nearly all of it.
  std::int64_t device_memory = 0;
};

/// How many workers a session on the CPU alone would choose, which need not run. Throws Error as
/// Session does.
int cpu_workers();

/// End the last one before `main` does: behind it, StarPU and CUDA may be gone before a static one.
class Session {
 public:
  /// Starts StarPU or joins it. Reads the environment only to start it. Throws Error when it runs
  /// with other options, on a device that is not there, or when an environment variable of StarPU's
  /// is not what it reads; Failure when it cannot start.
  explicit Session(const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int workers() const noexcept;  ///< CPU workers
  /// Where programs run: what their lanes share is in the first.
  const std::vector<Space>& spaces() const noexcept;
  /// "StarPU 1.3.10, 2 CPU workers", with its GPUs behind.
  std::string description() const;
};

/// What the runtime did since the process began; each stays still after warm-up. Atomic reads.
struct Counters {
  long handles = 0;  ///< registered with StarPU
  long blocks = 0;   ///< real allocations made
  long pins = 0;     ///< blocks pinned or locked
  long tasks = 0;    ///< tasks built (not: submitted)
};

Counters counters() noexcept;

}  // namespace arenite::runtime
