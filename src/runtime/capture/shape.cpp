// A program set's part in captures: what its tasks and values are called, who touches which bytes.
#include <arenite/graph/dependencies.hpp>

#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <map>

namespace arenite::runtime {
namespace {

/// "backward conv1, pool1 (lane 0)": where the ops come from, each once.
std::string task_name(const graph::Graph& graph, const graph::Task& task) {
  constexpr std::size_t most = 3;
  std::vector<std::string> places;
  for (const graph::OpId id : task.ops) {
    const graph::Op& op = graph[id];
    std::string place = op.where.empty() ? std::string(op.name()) : op.where;
    if (std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(std::move(place));
  }
  std::string name = task.staging ? "staging" : std::string(to_string(task.phase));
  for (std::size_t i = 0; i < std::min(most, places.size()); ++i)
    name += (i == 0 ? " " : ", ") + places[i];
  if (places.size() > most) name += " and " + std::to_string(places.size() - most) + " more";
  if (task.lane >= 0) name += " (lane " + std::to_string(task.lane) + ")";
  return name;
}

/// Storages by task: those that its ops touch.
using Touched = std::vector<std::vector<graph::StorageId>>;

/// Whose bytes the later task takes: the first pair that overlaps.
std::string reused_bytes(const plan::StepPlan& plan, const std::vector<graph::StorageId>& before,
                         const std::vector<graph::StorageId>& after) {
  for (const graph::StorageId a : before) {
    for (const graph::StorageId b : after) {
      const plan::Placement &old = plan.placement(a), &next = plan.placement(b);
      if (a == b || old.external || next.external || old.block != next.block) continue;
      if (old.offset < next.offset + next.bytes && next.offset < old.offset + old.bytes)
        return "'" + next.name + "' takes bytes of '" + old.name + "'";
    }
  }
  return "bytes that are used again";
}

}  // namespace

CaptureShape Program::Impl::capture_shape() const {
  const graph::Schedule& schedule = spec.schedule;
  CaptureShape captured;
  captured.steps = shape();
  captured.tasks.resize(captured.steps.tasks.size());
  captured.traffic.resize(captured.steps.ops.size());
  std::map<std::size_t, std::size_t> blocks;        // of the plan → of the capture
  std::map<graph::StorageId, std::size_t> tenants;  // by storage
  Touched touched(schedule.tasks.size());
  for (std::size_t b = 0; b < spec.plan.blocks.size(); ++b) {
    const plan::BlockPlan& block = spec.plan.blocks[b];
    if (block.persistent || block.per_task_set) continue;
    // The plan has one packing for each of them, in their order.
    const plan::Plan& packing = spec.plan.packings[captured.blocks.size()];
    blocks.emplace(b, captured.blocks.size());
    captured.blocks.push_back({.name = block.name,
                               .peak = packing.peak,
                               .lower_bound = packing.lower_bound,
                               .optimal = packing.optimal});
  }

  const auto tenant_of = [&](graph::StorageId storage) -> CaptureShape::Tenant* {
    const plan::Placement& place = spec.plan.placement(storage);
    if (place.external || place.bytes == 0 || !blocks.contains(place.block)) return nullptr;
    const auto [known, is_new] = tenants.try_emplace(storage, captured.tenants.size());
    if (is_new) {
      captured.tenants.push_back(
          {.name = place.name,
           .label = place.saved ? "saved" : std::string(graph::to_string(place.cls)),
           .phase = place.phase,
           .block = blocks.at(place.block),
           .offset = place.offset,
           .bytes = place.bytes});
    }
    return &captured.tenants[known->second];
  };

  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const graph::Task& task = schedule.tasks[t];
    CaptureShape::Task& made = captured.tasks[t];
    made.name = task_name(spec.graph, task);
    made.phase = task.phase;
    made.lane = task.lane;
    made.microseconds = task.microseconds;
    for (std::size_t i = 0; i < task.ops.size(); ++i) {
      CaptureShape::Traffic& traffic = captured.traffic[captured.steps.tasks[t].ops[i]];
      for (const graph::Access& access : graph::accesses(spec.graph, task.ops[i])) {
        if (access.reads) traffic.read += access.bytes;
        if (access.writes) traffic.written += access.bytes;
        touched[t].push_back(access.storage);
        if (auto* tenant = tenant_of(access.storage)) tenant->touches.push_back({t, i});
      }
    }
  }
  for (std::size_t t = schedule.tasks.size(); t < captured.tasks.size(); ++t)
    captured.tasks[t].name = "end of the step";
  for (const plan::TaskEdge& edge : spec.plan.reuse_edges) {
    captured.tasks[edge.after.index].reuse.push_back(
        {edge.before.index,
         reused_bytes(spec.plan, touched[edge.before.index], touched[edge.after.index])});
  }
  return captured;
}

void ProgramSet::Impl::begin_capture(const CaptureRequest& request) {
  std::vector<CaptureSource> sources;
  std::vector<std::string> on_devices;
  std::vector<bool> used_again(blocks.size(), false);
  for (const auto& program : programs) {
    Program::Impl& impl = *program->impl_;
    if (!impl.device_status.empty()) {
      on_devices.push_back(impl.spec.name);
      continue;
    }
    sources.push_back({.shape = impl.capture_shape(),
                       .record = [&impl](StepRecords* into) { impl.flags.captured = into; }});
    for (const plan::Placement& place : impl.spec.plan.placements) {
      if (place.external || place.bytes == 0) continue;
      const plan::BlockPlan& block = impl.spec.plan.blocks[place.block];
      if (block.persistent || block.per_task_set || block.space.device != DeviceKind::cpu) continue;
      used_again[block_index(impl.spec, place, 0)] = true;
    }
  }
  capture = std::make_unique<Capture>(request, std::move(sources), std::move(on_devices), blocks,
                                      std::move(used_again));
}

}  // namespace arenite::runtime
