#include <arenite/error.hpp>

#include "src/runtime/idle.hpp"
#include "src/runtime/program_impl.hpp"

#include <cstring>

namespace arenite::runtime {

TaskSet::~TaskSet() {
  for (starpu_task* task : tasks) starpu_task_destroy(task);
}

void TaskSet::submit() {
  const IdleWatch::Submission awake(idle_watch());
  submission.reached();
  for (submitted_ = 0; submitted_ < tasks.size(); ++submitted_) {
    const int error = starpu_task_submit(tasks[submitted_]);
    if (error == 0) continue;
    fail({.found = std::string("StarPU refused a task: ") + std::strerror(-error),
          .expected = "a worker that can run it",
          .where = tasks[submitted_]->name ? tasks[submitted_]->name : "task"});
  }
}

void TaskSet::wait() noexcept {
  if (submitted_ == 0) return;
  // Every task, not only the last: one may be resubmitted only after its own termination. The only
  // error StarPU knows here is a task that cannot be waited for, and ours all can.
  [[maybe_unused]] const int error =
      starpu_task_wait_array(tasks.data(), static_cast<unsigned>(submitted_));
  order_of(end).end().follow();
  submitted_ = 0;
}

}  // namespace arenite::runtime
