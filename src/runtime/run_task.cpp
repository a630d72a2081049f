// What a task does: its ops, one after another; and how a set of tasks is begun and waited for.

#include <arenite/error.hpp>

#include "src/base/element.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <cstring>

namespace arenite::runtime {
namespace {

void run_control(const TaskBody& body, const BoundKernel& kernel);

void check(const TaskBody& body, const BoundKernel& kernel, const std::vector<Claim>& claims) {
  if constexpr (checked_build) {
    for (const Claim& claim : claims) {
      if (!claim.run()) body.status->report(kernel.call.op, status_overwritten);
    }
  }
}

inline void run_op(const TaskBody& body, const BoundKernel& kernel) {
  // A failed step changes nothing that survives it, and neither do those behind it.
  if (kernel.updates_state && (body.flags->failed.load() || body.status->load() != StatusWord::ok))
    return;
  check(body, kernel, kernel.claims);
  if (kernel.control) {
    run_control(body, kernel);
  } else {
    kernel.run(kernel.call);
  }
}

void hand_over(const TaskBody& body, const BoundKernel& kernel, const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    check(body, kernel, copy.claims);
    std::memmove(copy.into, copy.from, copy.bytes);
  }
}

/// Whether a loop goes on, as far as its block says.
bool run_block(const TaskBody& body, const BoundKernel& kernel, const BoundBlock& block) {
  for (const BoundKernel& inner : block.kernels) run_op(body, inner);
  check(body, kernel, block.claims);
  const bool more = block.next.holds();
  hand_over(body, kernel, block.copies);
  return more;
}

void run_control(const TaskBody& body, const BoundKernel& kernel) {
  const BoundControl& control = *kernel.control;
  if (!control.loop) {
    run_block(body, kernel, control.blocks[control.condition.holds() ? 0 : 1]);
    return;
  }
  // Read before the values of the first trip, which may take their bytes.
  const std::int64_t trips =
      control.trips ? std::min(*control.trips, control.max_trips) : control.max_trips;
  bool more = control.condition.holds();
  hand_over(body, kernel, control.entry);
  for (std::int64_t trip = 0; more && trip < trips; ++trip) {
    check(body, kernel, control.counter_claims);
    *control.counter = trip;
    more = run_block(body, kernel, control.blocks[0]);
  }
  hand_over(body, kernel, control.exit);
}

/// Apart from the loop that does not look at the clock, and never inlined into it.
[[gnu::noinline]] void run_recorded(const TaskBody& body) {
  const int worker = starpu_worker_get_id();
  StepRecords::Stamps profiled(body.flags->records, *body.step, body.number, worker);
  StepRecords::Stamps captured(body.flags->captured, *body.step, body.number, worker);
  const auto stamp = [&] {
    const std::int64_t now = StepRecords::now();
    profiled(now);
    captured(now);
  };
  stamp();
  for (const BoundKernel& kernel : body.kernels) {
    run_op(body, kernel);
    stamp();
  }
}

/// The ops that a task was coarsened from, one after another.
void run_ops(void* argument) {
  const TaskBody& body = *static_cast<const TaskBody*>(argument);
  if (body.flags->dry) return;
  if (body.flags->keeps_records()) [[unlikely]] {
    run_recorded(body);
  } else {
    for (const BoundKernel& kernel : body.kernels) run_op(body, kernel);
  }
  if (body.last && body.status->load() != StatusWord::ok) body.flags->failed = true;
}

}  // namespace

bool Condition::holds() const noexcept {
  return address == nullptr || with_element(type, [&](auto zero) {
           return *static_cast<const decltype(zero)*>(address) != zero;
         });
}

void run_body(TaskBody& body) noexcept { body.order.run(run_ops, &body); }

void run_task(void** /*buffers*/, void* argument) { run_body(*static_cast<TaskBody*>(argument)); }

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
