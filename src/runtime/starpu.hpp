// The only file that may know which StarPU this is: 1.3.10 (Debian 12) and 1.4 build alike.
//
// StarPU's structs grow between versions, so they are initialised by its functions and then
// assigned; designated initialisers would tie us to one of them.
#pragma once

#include <starpu.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace arenite::runtime::starpu {

inline std::string version() {
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

/// Of the headers that this was compiled with.
inline std::string built_for() {
  return std::to_string(STARPU_MAJOR_VERSION) + "." + std::to_string(STARPU_MINOR_VERSION) + "." +
         std::to_string(STARPU_RELEASE_VERSION);
}

inline constexpr bool has_cuda =
#ifdef STARPU_USE_CUDA
    true;
#else
    false;
#endif

/// It can record its own traces.
inline constexpr bool has_fxt =
#ifdef STARPU_USE_FXT
    true;
#else
    false;
#endif

/// Handles a task may hold without StarPU allocating a longer list (which it leaks on
/// resubmission). Debian's 1.3.10 is built for 8; a fuller build allows more, and plans should not
/// depend on it.
inline constexpr unsigned max_buffers = 8;
static_assert(STARPU_NMAXBUFS >= max_buffers);

inline constexpr int max_cpu_workers =
#ifdef STARPU_MAXCPUS
    STARPU_MAXCPUS;
#else
    64;
#endif

/// StarPU has a place for each GPU by its index, and writes beyond the last one unasked.
inline constexpr int max_gpus =
#ifdef STARPU_MAXCUDADEVS
    STARPU_MAXCUDADEVS;
#else
    0;
#endif

/// Where it keeps to the processors that the process may use (STARPU_WORKERS_GETBIND), it knows no
/// others. (1.4 does; and told not to keep to them after it once was, it frees a set twice.)
inline constexpr bool numbers_allowed_only = STARPU_MAJOR_VERSION == 1 && STARPU_MINOR_VERSION < 4;

/// With a CUDA worker for each of these GPUs, and workers on these processors, as long as there are
/// any. Without processors StarPU chooses: 1.4 one of each core, and then the same ones again.
inline starpu_conf configuration(int cpu_workers, const std::vector<int>& gpus,
                                 const std::vector<unsigned>& processors = {}) {
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.catch_signals = 0;                          // Ctrl-C belongs to the program, not to StarPU
  conf.precedence_over_environment_variables = 1;  // who calls asked the environment himself
  conf.ncpus = cpu_workers;
  conf.ncuda = static_cast<int>(gpus.size());
  conf.use_explicit_workers_cuda_gpuid = gpus.empty() ? 0 : 1;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    conf.workers_cuda_gpuid[i] = static_cast<unsigned>(gpus[i]);
  conf.nopencl = 0;
  conf.use_explicit_workers_bindid = processors.empty() ? 0 : 1;
  for (std::size_t i = 0; i < std::size(conf.workers_bindid) && !processors.empty(); ++i)
    conf.workers_bindid[i] = processors[i % processors.size()];
  return conf;
}

using Function = void (*)(void** buffers, void* argument);

/// A codelet for CPU workers, or for CUDA workers: there what it enqueues in the worker's own
/// stream belongs to the task, which ends with it.
inline starpu_codelet codelet(const char* name, Function function, bool on_cuda) {
  starpu_codelet made;
  starpu_codelet_init(&made);
  made.name = name;
  if (on_cuda) {
    made.cuda_funcs[0] = function;
    made.cuda_flags[0] = STARPU_CUDA_ASYNC;
  } else {
    made.cpu_funcs[0] = function;
    made.cpu_funcs_name[0] = name;
  }
  return made;
}

/// A task that is kept, to be submitted again and again, without handles and with no edges but
/// those that are declared.
inline starpu_task* task(starpu_codelet& codelet, const char* name, void* argument) {
  starpu_task* const made = starpu_task_create();
  made->cl = &codelet;
  made->name = name;
  made->cl_arg = argument;
  made->cl_arg_size = 1;  // StarPU only hands it on
  made->cl_arg_free = 0;
  made->destroy = 0;
  made->detach = 0;
  made->sequential_consistency = 0;
  made->nbuffers = 0;
  return made;
}

/// To be run by this worker alone.
inline void run_on(starpu_task& task, int worker) {
  task.execute_on_a_specific_worker = 1;
  task.workerid = static_cast<unsigned>(worker);
}

/// Called on the worker when a task of a CUDA worker has ended, before those behind it begin.
/// Debian 12's StarPU has no such call, and no CUDA workers either.
inline void call_at_end(starpu_task& task, void (*function)(void*), void* argument) {
#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
  task.epilogue_callback_func = function;
  task.epilogue_callback_arg = argument;
  task.epilogue_callback_arg_free = 0;
#else
  static_cast<void>(task), static_cast<void>(function), static_cast<void>(argument);
#endif
}

}  // namespace arenite::runtime::starpu
