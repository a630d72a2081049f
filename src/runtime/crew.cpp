#include "src/runtime/crew.hpp"

#include <arenite/error.hpp>

#include "src/runtime/counters.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/launcher.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>

namespace arenite::runtime {

void Crew::Queue::insert(Item item) noexcept {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  std::size_t place = count;
  for (; place > 0 && items_[place - 1].urgency >= item.urgency; --place)
    items_[place] = items_[place - 1];
  items_[place] = item;
  count_.store(count + 1, std::memory_order_relaxed);
}

void Crew::Queue::push(Item item) noexcept {
  const std::lock_guard lock(lock_);
  insert(item);
}

bool Crew::Queue::pop(bool most_urgent, Item& item) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;  // without the lock: often so
  const std::lock_guard lock(lock_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == 0) return false;
  Item* const place = items_.data() + (most_urgent ? count - 1 : 0);
  item = *place;
  std::copy(place + 1, items_.data() + count, place);
  count_.store(count - 1, std::memory_order_relaxed);
  return true;
}

void Crew::Queue::exchange(Item& item) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(lock_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == 0 || items_[count - 1].urgency <= item.urgency) return;
  const Item more_urgent = items_[count - 1];
  count_.store(count - 1, std::memory_order_relaxed);
  insert(item);
  item = more_urgent;
}

Crew::Crew(std::deque<TaskSet>& sets, const graph::Schedule& schedule, ProgramFlags& flags,
           std::size_t workers)
    : sets_(sets), flags_(flags) {
  nodes_.resize(sets_.front().tasks.size());
  make_launchers();
  link();
  make_members(find_homes(schedule, workers));
  find_urgencies(schedule);
  submit_and_wait();  // what StarPU allocates for a task, it does now
}

void Crew::make_members(std::size_t count) {
  codelet_ = starpu::codelet("arenite_crew", run_member, false);
  for (std::size_t i = 0; i < count; ++i) {
    Member& member = members_.emplace_back();
    member.crew = this;
    member.number = i;
    member.ready.reserve(nodes_.size() * sets_.size());
    member.staging.reserve(nodes_.size() * sets_.size());
    new_task(codelet_, &member, starpu_worker_get_by_type(STARPU_CPU_WORKER, static_cast<int>(i)));
  }
}

void Crew::make_launchers() {
  const TaskSet& set = sets_.front();
  for (std::size_t t = 0; t < set.bodies.size(); ++t) {
    if (!set.bodies[t].on_device) continue;
    Device& device = *set.bodies[t].on_device->device;
    auto known = std::ranges::find_if(
        launchers_, [&](const auto& launcher) { return &launcher->device() == &device; });
    if (known == launchers_.end()) {
      launchers_.push_back(std::make_unique<Launcher>(*this, device, sets_.size(), nodes_.size()));
      known = std::prev(launchers_.end());
      new_task((*known)->codelet(), known->get(), device.worker());
    }
    nodes_[t].launcher = known->get();
  }
}

starpu_task* Crew::new_task(starpu_codelet& codelet, void* argument, int worker) {
  starpu_task* const task = tasks_.emplace_back(starpu::task(codelet, "crew", argument));
  starpu::run_on(*task, worker);
  ++atomic_counters().tasks;
  return task;
}

Crew::~Crew() {
  for (starpu_task* task : tasks_) starpu_task_destroy(task);
}

void Crew::link() {
  const TaskSet& set = sets_.front();
  for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
    nodes_[t].needs = static_cast<int>(set.predecessors[t].size());
    for (std::size_t p : set.predecessors[t]) {
      const auto before = static_cast<std::uint32_t>(p);
      (in_one_stream(before, t) ? nodes_[p].behind : nodes_[p].successors).push_back(t);
    }
  }
  end_ = static_cast<std::uint32_t>(body_of(set.end).number);
  for (const starpu_task* task : set.entries) {
    const auto entry = static_cast<std::uint32_t>(body_of(task).number);
    (in_one_stream(end_, entry) ? chained_ : entries_).push_back(entry);
    ++nodes_[entry].needs;
  }
  for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
    if (nodes_[t].needs == 0) roots_.push_back(t);
  }
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    pending_.push_back(std::make_unique<std::atomic<int>[]>(nodes_.size()));
    for (std::size_t t = 0; t < nodes_.size(); ++t) pending_[s][t] = nodes_[t].needs;
  }
}

/// On one device, and both of the step or both ahead of it.
bool Crew::in_one_stream(std::uint32_t a, std::uint32_t b) const noexcept {
  const auto& bodies = sets_.front().bodies;
  return nodes_[a].launcher != nullptr && nodes_[a].launcher == nodes_[b].launcher &&
         bodies[a].on_device->staging == bodies[b].on_device->staging;
}

/// A lane keeps to one member, with its parts of large weights, and what is in no lane is dealt
/// out. Returns how many members are of use: as many as tasks can run side by side.
std::size_t Crew::find_homes(const graph::Schedule& schedule, std::size_t workers) {
  std::vector<std::size_t> level(nodes_.size(), 0), width, shared;
  std::size_t lanes = 1, for_cpu = 0;
  for (std::size_t t = 0; t < nodes_.size(); ++t) {
    for (std::size_t before : sets_.front().predecessors[t])
      level[t] = std::max(level[t], level[before] + 1);
    width.resize(std::max(width.size(), level[t] + 1), 0);
    for_cpu += nodes_[t].launcher == nullptr ? 1 : 0;
    if (t >= schedule.tasks.size()) continue;  // the end of a step, when it has its own task
    nodes_[t].staging = schedule.tasks[t].staging;
    if (schedule.tasks[t].phase != Phase::update) nodes_[t].lane = schedule.tasks[t].lane;
    if (nodes_[t].launcher != nullptr) continue;
    if (!nodes_[t].staging) ++width[level[t]];
    if (schedule.tasks[t].lane >= 0)
      lanes = std::max(lanes, static_cast<std::size_t>(schedule.tasks[t].lane) + 1);
  }
  const std::size_t widest = width.empty() ? 1 : *std::max_element(width.begin(), width.end());
  if (for_cpu == 0) return 0;
  const std::size_t size = std::clamp<std::size_t>(widest, 1, workers);
  shared.resize(width.size(), 0);
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const int lane = schedule.tasks[t].lane;
    nodes_[t].home =
        lane >= 0 ? static_cast<std::size_t>(lane) * size / lanes : shared[level[t]]++ % size;
  }
  return size;
}

/// What the step's end waits for longest goes first: a lane's own tasks before the updates that
/// several lanes share, of which whoever has ended its own takes one.
void Crew::find_urgencies(const graph::Schedule& schedule) {
  for (std::size_t t = nodes_.size(); t-- > 0;) {
    float behind = 0;
    for (const std::uint32_t successor : nodes_[t].successors)
      behind = std::max(behind, nodes_[successor].urgency);
    const double own = t < schedule.tasks.size() ? schedule.tasks[t].microseconds : 0;
    nodes_[t].urgency = behind + static_cast<float>(own);
  }
}

long Crew::run(const CrewOrder& order) {
  // Members would wait for launchers, and launchers of one program for those of another.
  static std::mutex devices;
  std::unique_lock alone(devices, std::defer_lock);
  if (!launchers_.empty()) alone.lock();
  begin(order);
  submit_and_wait();
  for (TaskSet& set : sets_) order_of(set.end).end().follow();
  return ended_;
}

void Crew::begin(const CrewOrder& order) noexcept {
  order_ = order;
  armed_ = ended_ = 0;
  for (const auto& launcher : launchers_) launcher->begin();
  finished_.store(false);
  for (std::size_t i = 0; i < sets_.size() && armed_ < order_.count; ++i)
    arm((order_.first_set + i) % sets_.size());
  release_entries(order_.first_set, nullptr, 0);
  release_chained(order_.first_set);
}

void Crew::submit_and_wait() {
  int error = 0;
  std::size_t submitted = 0;
  begun_.reached();
  {
    const IdleWatch::Submission awake(idle_watch());
    for (starpu_task* task : tasks_) {
      error = starpu_task_submit(task);
      if (error != 0) break;
      ++submitted;
    }
  }
  if (error != 0) finished_.store(true);  // for those that wait for the one that is not there
  // The only error StarPU knows here is a task that cannot be waited for, and ours all can.
  [[maybe_unused]] const int waited =
      starpu_task_wait_array(tasks_.data(), static_cast<unsigned>(submitted));
  left_.follow();
  if (error == 0) return;
  fail({.found = std::string("StarPU refused a member of a crew: ") + std::strerror(-error),
        .expected = "a worker that can run it"});
}

/// The set's last step has ended, and so its inputs may be filled anew.
void Crew::arm(std::size_t set) noexcept {
  TaskSet& next = sets_[set];
  next.step = order_.first_step + armed_;
  for (const CountedInput& input : order_.counted) {
    if (input.addresses != nullptr)
      *static_cast<std::int64_t*>((*input.addresses)[set]) = input.first + armed_ * input.stride;
  }
  ++armed_;
  flags_.submitting(next.step);
  next.submission.reached();
  for (const std::uint32_t task : roots_) push(item(set, task));
  if (Launcher* last = nodes_[end_].launcher) last->armed(set);
}

void Crew::release_entries(std::size_t set, Item* next, std::size_t member) noexcept {
  for (const std::uint32_t task : entries_) release(set, task, next, member);
}

/// The set's first tasks go behind the last one of the step before, if they are to come at all.
void Crew::release_chained(std::size_t set) noexcept {
  for (const std::uint32_t task : chained_) release(set, task, nullptr, 0);
}

/// One of the ends that a task waits for. With the most urgent one that becomes ready the caller
/// goes on itself, if it is at home there: no queue, and its data is in the cache.
void Crew::release(std::size_t set, std::uint32_t task, Item* next, std::size_t member) noexcept {
  if (pending_[set][task].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Node& node = nodes_[task];
  Item ready = item(set, task);
  if (next != nullptr && node.launcher == nullptr && node.home == member && !node.staging) {
    if (next->task == no_task || next->urgency < ready.urgency) std::swap(*next, ready);
    if (ready.task == no_task) return;
  }
  push(ready);
}

Crew::Item Crew::item(std::size_t set, std::uint32_t task) const noexcept {
  return {.set = static_cast<std::uint32_t>(set), .task = task, .urgency = nodes_[task].urgency};
}

void Crew::push(Item item) noexcept {
  const Node& node = nodes_[item.task];
  if (node.launcher != nullptr) {
    node.launcher->push(item);
    return;
  }
  Member& home = members_[node.home];
  (node.staging ? home.staging : home.ready).push(item);
}

/// Own work first, then what others will miss least; the next batch only where nothing of this one
/// is left to do.
bool Crew::take(std::size_t member, Item& item) noexcept {
  const std::size_t count = members_.size();
  for (Queue Member::*queue : {&Member::ready, &Member::staging}) {
    if ((members_[member].*queue).pop_most_urgent(item)) return true;
    for (std::size_t i = 1; i < count; ++i) {
      if ((members_[(member + i) % count].*queue).pop_least_urgent(item)) return true;
    }
  }
  return false;
}

/// With a lane whose samples are in the cache: they would be gone after a task of another one that
/// is at home here, for which nobody waits longer.
bool Crew::goes_on(Item item, Item next) const noexcept {
  const int lane = nodes_[next.task].lane;
  return lane != graph::Op::shared_lane && lane == nodes_[item.task].lane;
}

/// Runs a task; true when `item` is one to go on with.
bool Crew::perform(Item& item, std::size_t member) noexcept {
  // Nobody counts it down before the set's next step.
  pending_[item.set][item.task].store(nodes_[item.task].needs, std::memory_order_relaxed);
  run_body(sets_[item.set].bodies[item.task]);
  Item next{.set = 0, .task = no_task, .urgency = 0};
  for (const std::uint32_t successor : nodes_[item.task].successors)
    release(item.set, successor, &next, member);
  if (item.task == end_) finish(item.set, &next, member);
  if (next.task != no_task && !goes_on(item, next)) members_[member].ready.exchange(next);
  item = next;
  return next.task != no_task;
}

void Crew::finish(std::size_t set, Item* next, std::size_t member) noexcept {
  order_of(sets_[set].end).end().follow();  // for the race checker: what arm writes, that step read
  ++ended_;
  if (may_begin_another()) {
    arm(set);
  } else {
    order_.count = armed_;
  }
  if (ended_ < armed_) {
    release_entries((set + 1) % sets_.size(), next, member);
  } else {
    finished_.store(true, std::memory_order_release);
  }
}

/// A failed step's status word must stay until it was reported.
bool Crew::may_begin_another() const noexcept {
  if (armed_ >= order_.count || flags_.failed.load()) return false;
  if (std::ranges::any_of(launchers_, [](const auto& l) { return l->device().failed(); }))
    return false;
  if (order_.stop != nullptr && order_.stop->load(std::memory_order_relaxed)) return false;
  return order_.until == 0 || StepRecords::now() < order_.until;
}

ARENITE_UNCHECKED void Crew::run_member(void** /*buffers*/, void* argument) {
  const auto& self = *static_cast<const Member*>(argument);
  self.crew->work(self);
}

void Crew::work(const Member& self) noexcept {
  begun_.follow();
  Spin spin;
  while (!finished_.load(std::memory_order_acquire)) {
    Item item;
    if (!take(self.number, item)) {
      spin.once();
      continue;
    }
    while (perform(item, self.number)) {
    }
    spin = Spin();
  }
  left_.reached();
}

}  // namespace arenite::runtime
