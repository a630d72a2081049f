// Programs that run: what a task does, how a set of tasks is begun and waited for, and many steps.

#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>

#include "src/base/element.hpp"
#include "src/base/refuse.hpp"
#include "src/runtime/crew.hpp"
#include "src/runtime/forked.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <cstring>

namespace arenite::runtime {
namespace {

// ---- what a task does: its ops, one after another ----------------------------------------------

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

// ---- programs ----------------------------------------------------------------------------------

namespace {

/// Others have had the bytes of what comes and goes in a step.
bool stays(const graph::Storage& storage) {
  return storage.space.device == DeviceKind::cpu && (storage.cls == graph::StorageClass::input ||
                                                     storage.cls == graph::StorageClass::constant);
}

}  // namespace

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;

const std::string& Program::name() const noexcept { return impl_->spec.name; }
const ProgramSpec& Program::spec() const noexcept { return impl_->spec; }
long Program::steps() const noexcept { return impl_->steps; }

Program::Impl::Impl(ProgramSet::Impl& owner, ProgramSpec given)
    : set(owner), spec(std::move(given)) {}

Program::Impl::~Impl() {
  // All sets before any task is destroyed: the last task of one notifies the first of the next.
  drain();
  if (set.active == this) set.active = nullptr;
}

const Program::Impl::Slot& Program::Impl::input(std::string_view name) const {
  for (const Slot& slot : inputs) {
    if (spec.graph[slot.value].name == name) return slot;
  }
  refuse("no input '" + std::string(name) + "'", "a declared input of program '" + spec.name + "'");
}

void* Program::input(std::string_view name, std::size_t element_bytes) {
  refuse_forked();
  Impl& p = *impl_;
  const Impl::Slot& slot = p.input(name);
  const graph::Value& value = p.spec.graph[slot.value];
  if (static_cast<std::size_t>(size_of(value.type)) != element_bytes) {
    refuse("input '" + value.name + "' taken as elements of " + std::to_string(element_bytes) +
               " bytes",
           std::string(to_string(value.type)));
  }
  const Program::Impl* const other = p.set.active;
  if (other != nullptr && other != &p && entry_of(other->spec) == entry_of(p.spec))
    p.set.activate(p);  // whose steps may still read these bytes
  p.sets[p.next].wait();
  return slot.addresses[p.next];
}

std::span<const std::byte> Program::output_bytes(std::size_t index, DType type) {
  Impl& p = *impl_;
  if (index >= p.outputs.size()) {
    refuse("output " + std::to_string(index) + " of program '" + p.spec.name + "'",
           "one of its " + std::to_string(p.outputs.size()) + " outputs");
  }
  if (p.steps == 0) refuse("an output before the first step", "a submitted step");
  const Impl::Slot& slot = p.outputs[index];
  const graph::Value& value = p.spec.graph[slot.value];
  if (value.type != type) {
    refuse("output '" + value.name + "' taken as " + std::string(to_string(type)),
           std::string(to_string(value.type)));
  }
  wait();
  return {static_cast<const std::byte*>(slot.addresses[p.last]),
          static_cast<std::size_t>(graph::byte_size(value.type, value.shape, value.layout))};
}

void Program::submit() {
  Impl& p = *impl_;
  p.check_whole();
  p.set.activate(p);
  p.set.take_back();
  TaskSet& mine = p.sets[p.next];
  mine.wait();
  // A failed step keeps its report until somebody waits: its word must not be reused before.
  if (p.flags.failed.load()) wait();
  mine.step = p.steps;
  p.flags.submitting(p.steps);
  p.broken = true;  // and stays so unless StarPU takes all tasks
  mine.submit();
  p.broken = false;
  ++p.steps;
  p.last = p.next;
  p.next = (p.next + 1) % p.sets.size();
}

/// As `run`, without a crew.
long Program::submit_steps(const RunRequest& request, std::int64_t until) {
  const auto stopped = [&] {
    return (request.stop != nullptr && request.stop->load(std::memory_order_relaxed)) ||
           (until != 0 && StepRecords::now() >= until);
  };
  long done = 0;
  for (; done < request.steps && (done == 0 || !stopped()); ++done) {
    for (const Counter& counter : request.counters) {
      if (!counter.input.empty())
        *input<std::int64_t>(counter.input) = counter.first + done * counter.stride;
    }
    submit();
  }
  wait();
  return done;
}

long Program::run(const RunRequest& request) {
  Impl& p = *impl_;
  p.check_whole();
  if (request.steps < 0) refuse(std::to_string(request.steps) + " steps", "at least 0");
  CrewOrder order{
      .count = request.steps, .first_step = p.steps, .first_set = p.next, .stop = request.stop};
  for (std::size_t i = 0; i < order.counted.size(); ++i) {
    const Counter& counter = request.counters[i];
    if (counter.input.empty()) continue;
    const Impl::Slot& slot = p.input(counter.input);
    const graph::Value& value = p.spec.graph[slot.value];
    if (value.type != DType::int64 || value.shape.elements() != 1) {
      refuse("input '" + value.name + "' of type " + std::string(to_string(value.type)) +
                 to_string(value.shape) + " as a counter",
             "one int64");
    }
    order.counted[i] = {&slot.addresses, counter.first, counter.stride};
  }
  if (request.seconds > 0)
    order.until =
        StepRecords::now() + static_cast<std::int64_t>(std::min(request.seconds, 1e9) * 1e9);
  p.set.activate(p);
  wait();
  if (request.steps == 0) return 0;
  if (!p.crew) return submit_steps(request, order.until);
  p.set.take_back();
  p.broken = true;  // as in submit()
  const long done = p.crew->run(order);
  p.broken = false;
  p.steps += done;
  // `next` stays: StarPU's ring of tasks goes on where it stood.
  p.last = (p.next + static_cast<std::size_t>(done) - 1) % p.sets.size();
  p.report();
  return done;
}

void Program::wait() {
  refuse_forked();
  impl_->drain();
  impl_->report();
}

void Program::Impl::check_whole() const {
  refuse_forked();
  if (!broken) return;
  refuse("program '" + spec.name + "' after StarPU refused one of its tasks",
         "a program set built anew");
}

void Program::Impl::drain() noexcept {
  if (is_forked()) return;
  for (TaskSet& s : sets) s.wait();
}

void Program::Impl::report() {
  const auto& launches = set.kernels.on_devices.take_failure;
  for (DeviceStatus& status : device_status) {
    std::string failure = status.device().failure();
    if (failure.empty() && launches) failure = launches();
    if (failure.empty()) continue;
    broken = true;
    for (const auto queue : {Device::Queue::compute, Device::Queue::staging})
      status.device().finish(status.device().stream(queue));
    throw Failure({.found = failure,
                   .expected = "a device that does its work",
                   .where = "program '" + spec.name + "'"});
  }
  const TaskSet* first = nullptr;
  for (const TaskSet& s : sets) {
    if (s.status.load() != StatusWord::ok && (!first || s.step < first->step)) first = &s;
  }
  if (!first) return;
  const std::uint64_t word = first->status.load();
  const long step = first->step;
  const auto number = static_cast<std::size_t>(
      std::ranges::find_if(sets, [&](const TaskSet& one) { return &one == first; }) - sets.begin());
  for (DeviceStatus& status : device_status) status.clear();
  for (TaskSet& s : sets) s.status.clear();
  flags.failed = false;

  const graph::OpId op{StatusWord::op_of(word)};
  ErrorText text = fault(op, StatusWord::code_of(word), number);
  text.where =
      "program '" + spec.name + "', step " + std::to_string(step) + ", " + describe(spec.graph, op);
  throw StepError(text);
}

/// What an op has found in this task set, whose inputs are what they were.
ErrorText Program::Impl::fault(graph::OpId id, std::uint32_t code, std::size_t number) {
  if (code == status_overwritten) {
    return {.found = "an operand's bytes were overwritten before this op read them",
            .expected = "a plan that keeps them"};
  }
  const graph::Op& op = spec.graph[id];
  std::vector<const void*> operands;
  for (const graph::ValueId operand : op.operands) {
    operands.push_back(operand && stays(spec.graph.root_storage(operand)) ? address(operand, number)
                                                                          : nullptr);
  }
  return op.definition->fault({spec.graph, op}, code, operands);
}

}  // namespace arenite::runtime
