#include "src/runtime/idle.hpp"

#include <arenite/error.hpp>

#include "src/runtime/starpu.hpp"

#include <sched.h>

#include <starpu_expert.h>

namespace arenite::runtime {
namespace {

/// Between two of a worker's looks for a task, which found none: it would keep its core from a
/// thread that is about to have one, or to end what the worker waits for.
unsigned let_others_run(void* /*unused*/) {
  sched_yield();
  return 0;  // and look again
}

}  // namespace

IdleWatch& idle_watch() noexcept {
  // Never destroyed: a process may end with sessions open, and so with the thread running.
  static IdleWatch& instance = *new IdleWatch;
  return instance;
}

void IdleWatch::start(std::chrono::microseconds period) {
  ending_ = false;
  hook_ = starpu_idle_hook_register(let_others_run, nullptr);
  if (hook_ < 0) {
    fail({.found = "StarPU has no room for another hook", .expected = "one of its 16 free"});
  }
  starpu_pause();
  paused_.store(true);
  thread_ = std::thread(&IdleWatch::watch, this, period);
}

void IdleWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  resume();
  starpu_idle_hook_deregister(hook_);
}

/// Submissions first: one that ends between the two has its tasks counted.
bool IdleWatch::nothing_to_do() const noexcept {
  return under_way_.load() == 0 && starpu_task_nsubmitted() == 0;
}

void IdleWatch::watch(std::chrono::microseconds period) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = submissions_.load();
  bool idle = false;  // at the last look
  while (!ending_) {
    if (paused_.load()) {
      changed_.wait(lock, [&] { return ending_ || !paused_.load(); });
      idle = false;
      continue;
    }
    changed_.wait_for(lock, period, [&] { return ending_; });
    if (paused_.load()) continue;  // by `rest`: StarPU counts pauses
    const std::uint64_t now = submissions_.load();
    const bool was_idle = idle && now == seen;
    seen = now;
    idle = nothing_to_do();
    if (!idle || !was_idle || ending_) continue;
    pause();
  }
}

void IdleWatch::rest() {
  // A task that was waited for counts as submitted until its worker has tidied up.
  for (int look = 0; look < 1000 && !nothing_to_do(); ++look) std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  if (!paused_.load() && nothing_to_do()) pause();
}

void IdleWatch::pause() {
  paused_.store(true);
  starpu_pause();
  if (!nothing_to_do()) {  // a submission that may not have seen the pause
    starpu_resume();
    paused_.store(false);
  }
}

void IdleWatch::resume() noexcept {
  const std::lock_guard lock(mutex_);
  if (!paused_.load()) return;
  starpu_resume();
  paused_.store(false);
  changed_.notify_one();
}

}  // namespace arenite::runtime
