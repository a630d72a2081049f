#include "src/runtime/launcher.hpp"

#include "src/runtime/device_task.hpp"

#include <algorithm>
#include <cstdio>

namespace arenite::runtime {

Launcher::Launcher(Crew& crew, Device& device, std::size_t sets, std::size_t tasks)
    : crew_(crew),
      device_(&device),
      codelet_(starpu::codelet("arenite_launcher", run, device.has_cuda_worker())),
      ended_(sets) {
  ready_.reserve(sets * tasks);
  for (Flight& flight : flights_) flight.items.resize(sets * tasks);
  for (auto& of_set : ended_) {
    for (std::size_t t = 0; t < tasks; ++t) of_set.push_back(device.make_event());
  }
}

void Launcher::begin() noexcept {
  launched_ = 0;
  owes_ = false;
}

void Launcher::armed(std::size_t set) noexcept {
  if (!owes_) return;
  owes_ = false;
  crew_.release_chained(set);
}

ARENITE_UNCHECKED void Launcher::run(void** /*buffers*/, void* argument) {
  auto& self = *static_cast<Launcher*>(argument);
  self.crew_.begun_.follow();
  self.work();
}

void Launcher::work() noexcept {
  Spin spin;
  while (!crew_.finished_.load(std::memory_order_acquire)) {
    bool moved = false;
    for (Crew::Item item; ready_.pop_most_urgent(item); moved = true) launch(item);
    for (std::size_t queue = 0; queue < flights_.size(); ++queue) moved |= end_first(queue);
    if (moved) {
      spin = Spin();
    } else {
      spin.once();
    }
  }
  if (device_->failed()) tell_failure();
  crew_.left_.reached();
}

/// Now, for StarPU looks at the stream when this task ends, and ends the process on what it finds.
void Launcher::tell_failure() const noexcept {
  const TaskSet& first = crew_.sets_.front();
  long step = first.step;
  for (const TaskSet& set : crew_.sets_) step = std::min(step, set.step);
  std::fprintf(stderr, "arenite: %s (program '%s', step %ld or behind it)\n",
               device_->failure().c_str(), first.end->cl->name, step);
}

void Launcher::launch(Crew::Item item) noexcept {
  const Crew::Node& node = crew_.nodes_[item.task];
  // Nobody counts it down before the set's next step.
  crew_.pending_[item.set][item.task].store(node.needs, std::memory_order_relaxed);
  TaskBody& body = crew_.sets_[item.set].bodies[item.task];
  const Device::Queue queue = body.on_device->queue();
  enqueue_task(body);
  device_->mark(*ended_[item.set][item.task], device_->stream(queue));
  Flight& flight = flights_[static_cast<std::size_t>(queue)];
  flight.items[(flight.first + flight.count++) % flight.items.size()] = item;
  for (const std::uint32_t next : node.behind) crew_.release(item.set, next, nullptr, 0);
  if (item.task != crew_.end_) return;
  ++launched_;
  if (launched_ < crew_.armed_) {
    crew_.release_chained((item.set + 1) % crew_.sets_.size());
  } else {
    owes_ = true;
  }
}

/// True when the first task in the stream has ended.
bool Launcher::end_first(std::size_t queue) noexcept {
  Flight& flight = flights_[queue];
  if (flight.count == 0) return false;
  const Crew::Item item = flight.items[flight.first];
  if (!device_->reached(*ended_[item.set][item.task])) return false;
  flight.first = (flight.first + 1) % flight.items.size();
  --flight.count;
  TaskBody& body = crew_.sets_[item.set].bodies[item.task];
  end_device_task(body);
  body.order.end().reached();  // for the race checker: what the device wrote
  for (const std::uint32_t next : crew_.nodes_[item.task].successors)
    crew_.release(item.set, next, nullptr, 0);
  if (item.task == crew_.end_) crew_.finish(item.set, nullptr, 0);
  return true;
}

}  // namespace arenite::runtime
