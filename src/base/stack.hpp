// Where `ulimit -s`, or whoever made the thread, leaves less stack than a library's code takes.
#pragma once

#include <cstddef>
#include <functional>

namespace arenite {

/// Bytes of this thread's stack below the caller.
std::size_t stack_left();

/// Calls `work` here, or on a thread made for it where less than `bytes` of stack are left. Throws
/// what `work` throws, and Failure where the system refuses the thread.
void with_stack(std::size_t bytes, const std::function<void()>& work);

/// While one lives, threads that name no size of their own get a stack of at least `bytes`: by
/// default glibc gives them what `ulimit -s` says.
class RoomyThreads {
 public:
  explicit RoomyThreads(std::size_t bytes);
  ~RoomyThreads();
  RoomyThreads(const RoomyThreads&) = delete;
  RoomyThreads& operator=(const RoomyThreads&) = delete;

 private:
  std::size_t before_ = 0;  ///< 0: nothing to restore
};

}  // namespace arenite
