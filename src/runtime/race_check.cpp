#include "src/runtime/race_check.hpp"

#if ARENITE_RACE_CHECK

#include <arenite/error.hpp>

#include <sanitizer/tsan_interface.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::runtime {

void OrderPoint::reached() noexcept { __tsan_release(this); }
void OrderPoint::follow() noexcept { __tsan_acquire(this); }

/// Tasks that ran one after the other on a worker's stack would seem to race there.
struct OrderedTask::Fiber {
  static constexpr std::size_t stack_bytes = 1 << 20;  // touched as far as it is used

  Fiber()
      : stack(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
    if (stack == MAP_FAILED)
      throw Failure({.found = "no memory for a task's stack", .expected = "1 MiB"});
    checked = __tsan_create_fiber(0);
  }
  ~Fiber() {
    __tsan_destroy_fiber(checked);
    munmap(stack, stack_bytes);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  ARENITE_UNCHECKED void run(TaskFunction given, void* with) noexcept {
    body = given;
    argument = with;
    getcontext(&own);
    own.uc_stack.ss_sp = stack;
    own.uc_stack.ss_size = stack_bytes;
    own.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    // makecontext passes ints only.
    makecontext(&own, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    worker = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(checked, __tsan_switch_to_fiber_no_sync);
    swapcontext(&back, &own);
  }

  ARENITE_UNCHECKED static void enter(unsigned high, unsigned low) {
    auto* const self = reinterpret_cast<Fiber*>((std::uintptr_t{high} << 32) | low);
    for (std::size_t i = 0; i < self->count; ++i) __tsan_acquire(self->first[i]);
    self->body(self->argument);
    __tsan_release(&self->end);
    __tsan_switch_to_fiber(self->worker, __tsan_switch_to_fiber_no_sync);
    setcontext(&self->back);
  }

  void* stack;
  void* checked = nullptr;  // TSan's fiber
  void* worker = nullptr;   // the one it runs instead of
  ucontext_t own{}, back{};
  TaskFunction body = nullptr;
  void* argument = nullptr;
  std::vector<OrderPoint*> before;
  OrderPoint* const* first = nullptr;  // of `before`, whose functions are checked
  std::size_t count = 0;
  OrderPoint end;
};

OrderedTask::OrderedTask() : fiber_(std::make_unique<Fiber>()) {}
OrderedTask::~OrderedTask() = default;
OrderedTask::OrderedTask(OrderedTask&& other) noexcept = default;

void OrderedTask::follow(OrderPoint& point) {
  fiber_->before.push_back(&point);
  fiber_->first = fiber_->before.data();
  fiber_->count = fiber_->before.size();
}

OrderPoint& OrderedTask::end() noexcept { return fiber_->end; }

ARENITE_UNCHECKED void OrderedTask::run(TaskFunction body, void* argument) {
  Fiber* const* const fiber = reinterpret_cast<Fiber* const*>(&fiber_);
  (*fiber)->run(body, argument);
}

}  // namespace arenite::runtime

#endif
