// The only file that may know which StarPU this is: 1.3.10 (Debian 12) and 1.4 build alike.
//
// StarPU's structs grow between versions, so they are initialised by its functions and then
// assigned; designated initialisers would tie us to one of them.
#pragma once

#include <starpu.h>

#include <string>

namespace arenite::runtime::starpu {

inline std::string version() {
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

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

inline starpu_conf configuration() {
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.catch_signals = 0;  // Ctrl-C belongs to the program, not to StarPU
  conf.ncuda = 0;          // every kernel selected so far runs on the CPU
  conf.nopencl = 0;
  return conf;
}

}  // namespace arenite::runtime::starpu
