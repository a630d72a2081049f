// A step as ThreadSanitizer sees it: the plan's edges, and no other order.
//
// StarPU's own locks are hidden from it (cmake/tsan.supp). Instead every task says what it follows
// and runs as a fiber of its own, with a stack of its own. Two tasks that touch the same bytes and
// that no edge of the plan orders are then a reported race, even where StarPU happened to run one
// after the other on one worker. Without ThreadSanitizer all of this is empty.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define ARENITE_RACE_CHECK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARENITE_RACE_CHECK 1
#endif
#endif
#if !defined(ARENITE_RACE_CHECK)
#define ARENITE_RACE_CHECK 0
#endif

#if ARENITE_RACE_CHECK
#include <memory>
/// For functions that StarPU calls, and that read before they can say what they follow.
#define ARENITE_UNCHECKED [[gnu::noinline, gnu::no_sanitize("thread")]]
#else
#define ARENITE_UNCHECKED
#endif

namespace arenite::runtime {

using TaskFunction = void (*)(void* argument);

#if ARENITE_RACE_CHECK

/// Something that others come after: the end of a task, the submission of a step.
class OrderPoint {
 public:
  void reached() noexcept;
  void follow() noexcept;

 private:
  [[maybe_unused]] char token_ = 0;
};

/// A task's place in the order.
class OrderedTask {
 public:
  OrderedTask();
  ~OrderedTask();
  OrderedTask(OrderedTask&& other) noexcept;

  void follow(OrderPoint& point);  ///< only while nothing runs
  OrderPoint& end() noexcept;
  void run(TaskFunction body, void* argument);

 private:
  struct Fiber;
  std::unique_ptr<Fiber> fiber_;
};

#else

class OrderPoint {
 public:
  void reached() noexcept {}
  void follow() noexcept {}
};

class OrderedTask {
 public:
  void follow(OrderPoint& /*point*/) noexcept {}
  OrderPoint& end() noexcept { return end_; }
  void run(TaskFunction body, void* argument) { body(argument); }

 private:
  [[no_unique_address]] OrderPoint end_;
};

#endif

}  // namespace arenite::runtime
