// From a planned graph to StarPU tasks, once: codelets, kernels with their addresses in blocks,
// edges, and the ring of task sets.
#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/base/perf_map.hpp"
#include "src/runtime/counters.hpp"
#include "src/runtime/crew.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/program_impl.hpp"
#include "src/runtime/trampolines.hpp"

#include <algorithm>

namespace arenite::runtime {
namespace {

bool wants_crew() {
  return switched_on("ARENITE_CREW", "off to submit each task of Program::run through StarPU");
}

}  // namespace

void Program::Impl::build() {
  graph::check_spaces(spec.graph);
  make_handles();
  build_codelets();
  std::vector<PreparedKernel> prepared(spec.graph.op_count());
  for (graph::OpId id : graph::nested_ops(spec.graph)) {
    const graph::Op& op = spec.graph[id];
    if (op.definition->control != graph::Control::none || graph::is_view_op(spec.graph, id))
      continue;
    if (!op.regions.empty()) {
      fail({.found = "an op that holds blocks, and does not say how they run",
            .expected = "'if' or 'loop'",
            .where = "program '" + spec.name + "', " + describe(spec.graph, id)});
    }
    const Space space = graph::space_of(spec.graph, op);
    if (space.device != DeviceKind::cpu) device_of(space).make_current();
    prepared[id.index] = set.kernels.at(op, op.kernel, space.device).prepare({spec.graph, op});
  }
  name_kernels(prepared);
  for (int i = 0; i < set.options.task_sets; ++i) build_set(static_cast<std::size_t>(i), prepared);
  for (graph::ValueId id : spec.graph.declared(graph::StorageClass::input))
    inputs.push_back(slot(id));
  for (graph::ValueId id : spec.graph.outputs) outputs.push_back(slot(id));
  if (!checked_build) try_out_tasks();
  join_ring();
  if (wants_crew()) {
    crew = std::make_unique<Crew>(sets, spec.schedule, flags,
                                  static_cast<std::size_t>(set.session.workers()));
  }
}

/// For profilers, where they are asked for: "forward conv2d conv1 [xsmm]".
void Program::Impl::name_kernels(std::vector<PreparedKernel>& prepared) const {
  if (!perf_map().on()) return;
  std::vector<bool> staging(prepared.size(), false);
  for (const graph::Task& task : spec.schedule.tasks) {
    for (graph::OpId id : task.ops) staging[id.index] = task.staging;
  }
  std::vector<PreparedKernel*> kernels;
  std::vector<NamedKernel> named;
  for (graph::OpId id : graph::nested_ops(spec.graph)) {
    if (prepared[id.index].run == nullptr) continue;
    const graph::Op& op = spec.graph[id];
    std::string name(staging[id.index] ? "staging" : to_string(op.phase));
    name += " " + std::string(op.name()) + (op.where.empty() ? "" : " " + op.where);
    kernels.push_back(&prepared[id.index]);
    named.push_back({.name = name + " [" + op.kernel + "]", .run = kernels.back()->run});
  }
  give_frames(named);
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->run = named[i].run;
}

void Program::Impl::build_codelets() {
  codelet = starpu::codelet(spec.name.c_str(), run_task, false);
  codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  for (const graph::Task& task : spec.schedule.tasks) {
    if (task.space.device == DeviceKind::cpu) continue;
    const bool own = device_of(task.space).has_cuda_worker();
    device_codelet = starpu::codelet(spec.name.c_str(), run_device_task, own);
    device_codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  }
}

DeviceStatus& Program::Impl::status_on(Device& device) {
  for (DeviceStatus& known : device_status) {
    if (&known.device() == &device) return known;
  }
  return device_status.emplace_back(spec.name, device,
                                    static_cast<std::size_t>(set.options.task_sets),
                                    spec.schedule.tasks.size());
}

Program::Impl::Slot Program::Impl::slot(graph::ValueId value) {
  Slot made{.value = value, .addresses = {}};
  for (std::size_t i = 0; i < sets.size(); ++i) made.addresses.push_back(address(value, i));
  return made;
}

std::byte* Program::Impl::address(graph::ValueId id, std::size_t number) {
  const graph::Value& value = spec.graph[id];
  if (byte_size(value.type, value.shape, value.layout) == 0) return nullptr;
  const plan::Placement& place = spec.plan.placement(spec.graph.root(id));
  if (!place.external) {
    return set.blocks[set.block_index(spec, place, number)].data() + place.offset + value.offset;
  }
  auto it = spec.constants.find(place.name);
  if (it == spec.constants.end() || !it->second.data) {
    fail({.found = "constant '" + place.name + "' has no bytes",
          .expected = std::to_string(place.bytes) + " bytes bound by that name",
          .where = "program '" + spec.name + "'"});
  }
  if (it->second.bytes != place.bytes) {
    fail({.found = "constant '" + place.name + "' bound to " + std::to_string(it->second.bytes) +
                   " bytes",
          .expected = std::to_string(place.bytes),
          .where = "program '" + spec.name + "'"});
  }
  // Kernels take operands as void*; a constant's effect is always `read` (the verifier checks).
  return static_cast<std::byte*>(const_cast<void*>(it->second.data)) + value.offset;
}

BoundKernel Program::Impl::bind(graph::OpId id, const std::vector<PreparedKernel>& prepared,
                                std::size_t number) {
  const graph::Op& op = spec.graph[id];
  BoundKernel kernel;
  kernel.run = prepared[id.index].run;
  kernel.state = prepared[id.index].state;
  if (!op.regions.empty()) kernel.control = bind_control(op, prepared, number);
  for (graph::ValueId operand : op.operands)
    kernel.operands.push_back(operand ? address(operand, number) : nullptr);
  // Trailing optional operands may be left out of an op; kernels see them as absent.
  while (kernel.operands.size() < op.definition->operands.size())
    kernel.operands.push_back(nullptr);
  for (graph::ValueId result : op.results) kernel.results.push_back(address(result, number));
  for (const graph::Access& access : graph::accesses(spec.graph, id)) {
    kernel.updates_state = kernel.updates_state ||
                           (access.writes && is_persistent(spec.graph.storage(access.storage).cls));
  }
  // The vectors' elements stay where they are when the kernel is moved into its task.
  kernel.call = {.operands = kernel.operands.data(),
                 .results = kernel.results.data(),
                 .workspace = op.workspace ? address(op.workspace, number) : nullptr,
                 .state = kernel.state.get(),
                 .status = &sets[number].status,
                 .op = id.index};
  if (const Space space = graph::space_of(spec.graph, op); space.device != DeviceKind::cpu) {
    DeviceStatus& status = status_on(device_of(space));
    kernel.call.status = status.of(number);
    if (kernel.updates_state) kernel.call.failed = status.failed();
  }
  if constexpr (checked_build) kernel.claims = claims_of(id, number);
  return kernel;
}

std::shared_ptr<const BoundControl> Program::Impl::bind_control(
    const graph::Op& op, const std::vector<PreparedKernel>& prepared, std::size_t number) {
  auto control = std::make_shared<BoundControl>();
  control->loop = op.definition->control == graph::Control::loop;
  const auto& first = spec.graph[op.regions[0]];
  if (control->loop) {
    if (op.operands[0])
      control->trips = reinterpret_cast<const std::int64_t*>(address(op.operands[0], number));
    if (op.operands[1]) control->condition = bind_condition(op.operands[1], number);
    control->max_trips = op.attributes.integer("max_trips");
    control->counter = reinterpret_cast<std::int64_t*>(address(first.parameters[0], number));
    if constexpr (checked_build) control->counter_claims = claim(first.parameters[0], true, number);
    control->entry = bind_copies(op, handovers_at_entry(spec.graph, op), number);
    control->exit = bind_copies(op, handovers_at_exit(spec.graph, op), number);
  } else {
    control->condition = bind_condition(op.operands[0], number);
  }
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    const graph::Region& region = spec.graph[op.regions[r]];
    BoundBlock& block = control->blocks.emplace_back();
    for (graph::OpId inner : region.ops) {
      if (!graph::is_view_op(spec.graph, inner))
        block.kernels.push_back(bind(inner, prepared, number));
    }
    if (region.results.size() > op.results.size()) {
      block.next = bind_condition(region.results[0], number);
      if constexpr (checked_build) block.claims = claim(region.results[0], false, number);
    }
    block.copies = bind_copies(op, handovers_at_end(spec.graph, op, r), number);
  }
  return control;
}

Condition Program::Impl::bind_condition(graph::ValueId value, std::size_t number) {
  return {address(value, number), spec.graph[value].type};
}

/// What others would overwrite is set aside before, one behind the other in the workspace.
std::vector<Copy> Program::Impl::bind_copies(const graph::Op& op,
                                             const std::vector<graph::Handover>& handovers,
                                             std::size_t number) {
  std::vector<Copy> aside, copies;
  std::int64_t used = 0;
  const auto add = [&](std::vector<Copy>& list, void* into, const void* from,
                       std::int64_t bytes) -> Copy& {
    list.push_back(
        {.into = into, .from = from, .bytes = static_cast<std::size_t>(bytes), .claims = {}});
    return list.back();
  };
  const auto check = [&](Copy& copy, graph::ValueId read, graph::ValueId written) {
    if constexpr (!checked_build) return;
    copy.claims = claim(read, false, number);
    for (const Claim& one : claim(written, true, number)) copy.claims.push_back(one);
  };
  for (const graph::Handover& handover : handovers) {
    const graph::Value& value = spec.graph[handover.into];
    const std::int64_t bytes = byte_size(value.type, value.shape, value.layout);
    if (bytes == 0) continue;
    std::byte* from = address(handover.from, number);
    if (handover.staged) {
      std::byte* slot = address(op.workspace, number) + used;
      used += round_up(bytes, default_alignment);
      check(add(aside, slot, from, bytes), handover.from, op.workspace);
      from = slot;
    }
    check(add(copies, address(handover.into, number), from, bytes),
          handover.staged ? op.workspace : handover.from, handover.into);
  }
  aside.insert(aside.end(), copies.begin(), copies.end());
  return aside;
}

void Program::Impl::build_set(std::size_t number, const std::vector<PreparedKernel>& prepared) {
  TaskSet& made = sets.emplace_back();
  const std::size_t count = spec.schedule.tasks.size();
  std::vector<std::vector<starpu_task*>> before(count);
  made.predecessors.resize(count);
  std::vector<bool> has_successor(count, false);

  const auto new_task = [&](const char* name, TaskBody body) {
    body.flags = &flags;
    body.status = &made.status;
    body.step = &made.step;
    body.number = made.tasks.size();
    made.bodies.push_back(std::move(body));
    TaskBody& mine = made.bodies.back();
    const DeviceTask* there = mine.on_device.get();
    starpu_task* task = starpu::task(there ? device_codelet : codelet, name, &mine);
    if (there) starpu::run_on(*task, there->device->worker());
    if (there && there->device->has_cuda_worker())
      starpu::call_at_end(*task, device_task_ended, &mine);
    // No priorities: StarPU's queues allocate a node each time one of several priorities comes up.
    made.tasks.push_back(task);
    ++atomic_counters().tasks;
    return task;
  };
  const auto follow = [&](std::size_t task, graph::TaskId first) {
    before[task].push_back(made.tasks[first.index]);
    made.predecessors[task].push_back(first.index);
    made.bodies[task].order.follow(made.bodies[first.index].order.end());
    has_successor[first.index] = true;
  };

  // Sorted by task, so that each edge is looked at once.
  std::vector<plan::TaskEdge> reuse = spec.plan.reuse_edges;
  std::sort(reuse.begin(), reuse.end(),
            [](const auto& a, const auto& b) { return a.after < b.after; });
  auto edge = reuse.begin();
  for (std::size_t t = 0; t < count; ++t) {
    const graph::Task& task = spec.schedule.tasks[t];
    TaskBody body;
    for (graph::OpId op : task.ops) body.kernels.push_back(bind(op, prepared, number));
    if (task.space.device != DeviceKind::cpu) {
      DeviceStatus& status = status_on(device_of(task.space));
      body.on_device = std::make_unique<DeviceTask>();
      *body.on_device = {.device = &status.device(),
                         .status = status.of(number),
                         .failed = status.failed(),
                         .told = status.told(),
                         .sent = status.sent(number, t),
                         .sent_from_there = status.sent_from_there(number, t),
                         .staging = task.staging,
                         .work = nullptr};
    }
    starpu_task* mine = new_task(to_string(task.phase).data(), std::move(body));
    for (const ClassUse& use : guarded.uses[t]) {
      const auto& copies = guarded.handles[use.index];
      mine->handles[mine->nbuffers] = copies[copies.size() == 1 ? 0 : number];
      mine->modes[mine->nbuffers] =
          use.writes && guarded.classes[use.index].ordered ? STARPU_RW : STARPU_R;
      ++mine->nbuffers;
    }
    for (graph::TaskId p : task.predecessors) follow(t, p);
    for (; edge != reuse.end() && edge->after.index == t; ++edge) follow(t, edge->before);
    if (!before[t].empty()) {
      starpu_task_declare_deps_array(mine, static_cast<unsigned>(before[t].size()),
                                     before[t].data());
    }
    const bool waits_for_work =
        std::any_of(task.predecessors.begin(), task.predecessors.end(),
                    [&](graph::TaskId p) { return !spec.schedule[p].staging; });
    if (!task.staging && !waits_for_work) made.entries.push_back(mine);
    if (before[t].empty()) made.bodies[t].order.follow(made.submission);
  }

  std::vector<starpu_task*> sinks;
  std::vector<std::size_t> sink_numbers;
  bool staging_sink = false;
  for (std::size_t t = 0; t < count; ++t) {
    if (has_successor[t]) continue;
    sinks.push_back(made.tasks[t]);
    sink_numbers.push_back(t);
    staging_sink = staging_sink || spec.schedule.tasks[t].staging;
  }
  if (sinks.size() == 1 && !staging_sink) {
    made.end = sinks.front();
  } else {
    made.end = new_task("end", {});
    made.predecessors.push_back(std::move(sink_numbers));
    if (!sinks.empty())
      starpu_task_declare_deps_array(made.end, static_cast<unsigned>(sinks.size()), sinks.data());
    for (starpu_task* sink : sinks) order_of(made.end).follow(order_of(sink).end());
    if (sinks.empty()) order_of(made.end).follow(made.submission);
    if (made.entries.empty()) made.entries.push_back(made.end);
  }
  body_of(made.end).last = true;
}

/// Each step's entries follow the previous step's end. An edge from a task that has already run
/// counts as met, so one dry sweep over all sets lets the ring be closed without a first step that
/// waits for itself.
void Program::Impl::join_ring() {
  const auto join = [](TaskSet& before, TaskSet& after) {
    for (starpu_task* entry : after.entries) {
      starpu_task_declare_deps_array(entry, 1, &before.end);
      order_of(entry).follow(order_of(before.end).end());
    }
  };
  for (std::size_t i = 1; i < sets.size(); ++i) join(sets[i - 1], sets[i]);
  for (TaskSet& s : sets) s.submit();
  drain();
  idle_watch().rest();
  join(sets.back(), sets.front());
  flags.dry = false;
}

}  // namespace arenite::runtime
