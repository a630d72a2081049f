#include "tests/oracle/orders.hpp"

#include <algorithm>
#include <map>

namespace arenite::oracle {

namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

const runtime::ProgramSpec& spec_of(const RandomProgram& program, std::size_t step) {
  return program.programs[program.steps[step].program];
}

}  // namespace

Timeline::Timeline(const RandomProgram& program) {
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    add_step(program, step);
    join_step(program, step);
  }
}

void Timeline::follow(std::size_t event, std::size_t first) {
  before_[event].push_back(first);
  after_[first].push_back(event);
}

void Timeline::add_step(const RandomProgram& program, std::size_t step) {
  const runtime::ProgramSpec& spec = spec_of(program, step);
  std::vector<bool> scheduled(spec.graph.op_count(), false);
  for (const graph::Task& task : spec.schedule.tasks) {
    for (graph::OpId op : task.ops) scheduled[op.index] = true;
  }
  auto& number = number_.emplace_back(spec.graph.op_count(), none);
  for (graph::OpId op : spec.graph[graph::Graph::body].ops) {
    if (!scheduled[op.index]) continue;
    number[op.index] = events_.size();
    events_.push_back({step, op});
  }
  before_.resize(events_.size());
  after_.resize(events_.size());
  const auto first = [&](graph::TaskId t) { return find(step, spec.schedule[t].ops.front()); };
  const auto last = [&](graph::TaskId t) { return find(step, spec.schedule[t].ops.back()); };
  for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
    const graph::Task& task = spec.schedule.tasks[t];
    for (std::size_t i = 1; i < task.ops.size(); ++i)
      follow(find(step, task.ops[i]), find(step, task.ops[i - 1]));
    for (graph::TaskId p : task.predecessors) follow(first(graph::TaskId(t)), last(p));
  }
  for (const plan::TaskEdge& edge : spec.plan.reuse_edges)
    follow(first(edge.after), last(edge.before));
}

std::vector<std::size_t> Timeline::ends_of(const RandomProgram& program, std::size_t step) const {
  std::vector<std::size_t> ends;
  for (const graph::Task& task : spec_of(program, step).schedule.tasks) {
    const std::size_t last = find(step, task.ops.back());
    const bool followed = std::ranges::any_of(
        after_[last], [&](std::size_t event) { return events_[event].step == step; });
    if (!followed) ends.push_back(last);
  }
  return ends;
}

void Timeline::join_step(const RandomProgram& program, std::size_t step) {
  if (step == 0) return;
  const bool follows = program.steps[step].program == program.steps[step - 1].program;
  const std::vector<std::size_t> all_ended = ends_of(program, step - 1);
  // Staging has inputs of its own to write, and waits for the step that last read these.
  std::vector<std::size_t> inputs_free = all_ended;
  if (follows) inputs_free = step == 1 ? std::vector<std::size_t>{} : ends_of(program, step - 2);
  for (const graph::Task& task : spec_of(program, step).schedule.tasks) {
    for (std::size_t end : task.staging ? inputs_free : all_ended)
      follow(find(step, task.ops.front()), end);
  }
}

namespace {

/// Events that may run, as others do.
class Ready {
 public:
  explicit Ready(const Timeline& timeline) : timeline_(timeline) {
    for (std::size_t i = 0; i < timeline.events().size(); ++i) {
      waits_.push_back(timeline.before(i).size());
      if (waits_.back() == 0) list_.push_back(i);
    }
  }

  /// Oldest first.
  const std::vector<std::size_t>& list() const noexcept { return list_; }
  bool is_done(std::size_t event) const { return done_.contains(event); }

  Event take(std::size_t event) {
    list_.erase(std::ranges::find(list_, event));
    done_[event] = true;
    for (std::size_t next : timeline_.after(event)) {
      if (--waits_[next] == 0) list_.push_back(next);
    }
    return timeline_.events()[event];
  }

 private:
  const Timeline& timeline_;
  std::vector<std::size_t> list_, waits_;
  std::map<std::size_t, bool> done_;
};

std::size_t choose(const Timeline& timeline, const Ready& ready, Policy policy, Draw& draw,
                   std::size_t last) {
  const std::vector<std::size_t>& list = ready.list();
  switch (policy) {
    case Policy::program_order:
      return std::ranges::min(list);
    case Policy::latest_first:
      return std::ranges::max(list);
    case Policy::newest_first:
      return list.back();
    case Policy::oldest_first:
      return list.front();
    case Policy::depth_first:
      if (last != none) {
        std::vector<std::size_t> next;
        for (std::size_t event : timeline.after(last)) {
          if (std::ranges::find(list, event) != list.end()) next.push_back(event);
        }
        if (!next.empty()) return draw.of(next);
      }
      break;
    case Policy::random:
      break;
  }
  return draw.of(list);
}

}  // namespace

std::vector<Event> arrange(const Timeline& timeline, Policy policy, std::uint32_t seed) {
  Draw draw(seed);
  Ready ready(timeline);
  std::vector<Event> order;
  std::size_t last = none;
  while (!ready.list().empty()) {
    last = choose(timeline, ready, policy, draw, last);
    order.push_back(ready.take(last));
  }
  return order;
}

std::vector<Event> lead_with(const Timeline& timeline, std::span<const std::size_t> events) {
  Ready ready(timeline);
  std::vector<Event> order;
  for (std::size_t wanted : events) {
    // What it follows, and what that follows.
    std::vector<std::size_t> pending{wanted};
    std::vector<bool> needed(timeline.events().size(), false);
    needed[wanted] = true;
    while (!pending.empty()) {
      const std::size_t event = pending.back();
      pending.pop_back();
      for (std::size_t first : timeline.before(event)) {
        if (!needed[first]) pending.push_back(first);
        needed[first] = true;
      }
    }
    while (!ready.is_done(wanted)) {
      std::size_t next = none;
      for (std::size_t event : ready.list()) {
        if (needed[event]) next = std::min(next, event);
      }
      order.push_back(ready.take(next));
    }
  }
  while (!ready.list().empty()) order.push_back(ready.take(std::ranges::min(ready.list())));
  return order;
}

}  // namespace arenite::oracle
