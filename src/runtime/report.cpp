// What a program set says of itself: the memory table, and `--explain`.
#include <spdlog/fmt/fmt.h>
#include <arenite/graph/spaces.hpp>

#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <ostream>

namespace arenite::runtime {
namespace {

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 10 * 1024) return fmt::format("{} B", bytes);
  if (bytes < 10 * 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

void print(std::ostream& out, const ProgramSpec& spec, const std::vector<BlockUse>& blocks) {
  const plan::StepPlan& plan = spec.plan;
  out << fmt::format("memory plan of '{}' (layout {})\n", spec.name, to_string(plan.layout));
  out << fmt::format("  {:<10} {:<10} {:>12} {:>14} {:>7}\n", "arena", "in block", "peak",
                     "separately", "ratio");
  for (const plan::ArenaPlan& arena : plan.arenas) {
    const double ratio = static_cast<double>(arena.peak) /
                         static_cast<double>(std::max<std::int64_t>(1, arena.separate));
    out << fmt::format("  {:<10} {:<10} {:>12} {:>14} {:>7}\n", to_string(arena.phase), arena.block,
                       bytes_text(arena.peak), bytes_text(arena.separate),
                       arena.separate == 0 ? "-" : fmt::format("{:.3f}", ratio));
  }
  out << fmt::format("  {:<21} {:>12}   pinned\n", "block", "bytes");
  std::int64_t total = 0, on_devices = 0;
  for (const BlockUse& block : blocks) {
    out << fmt::format("  {:<21} {:>12}   {}\n", block.name, bytes_text(block.bytes), block.pinned);
    total += block.bytes;
    if (block.pinned == "device") on_devices += block.bytes;
  }
  out << fmt::format("  {:<21} {:>12}\n", "total", bytes_text(total));
  if (on_devices > 0) {  // to the byte, for whoever counts what CUDA was asked for
    out << fmt::format("  {:<21} {:>12}   {} bytes\n", "on devices", bytes_text(on_devices),
                       on_devices);
  }
  std::int64_t peak = 0;
  for (const plan::Plan& packing : plan.packings) peak += packing.peak;
  const double ratio = plan.lower_bound == 0
                           ? 1.0
                           : static_cast<double>(peak) / static_cast<double>(plan.lower_bound);
  out << fmt::format(
      "  max-live bound {}, peak {}: ratio {:.4f}{}; the same tensors allocated separately: {}\n",
      bytes_text(plan.lower_bound), bytes_text(peak), ratio,
      plan.optimal ? " (optimal, proved)" : "", bytes_text(plan.separate));
}

std::string recording(const TaskBody& body) {
  if (!body.on_device || !body.on_device->work) return "";
  const std::size_t branches = body.on_device->branches;
  return branches == 1 ? ", recorded" : fmt::format(", recorded in {} branches", branches);
}

}  // namespace

void print_plan(std::ostream& out, const ProgramSpec& spec) {
  std::vector<BlockUse> rows;
  for (const plan::BlockPlan& block : spec.plan.blocks) {
    rows.push_back(
        {block.name + (block.per_task_set ? " (one a task set)" : ""), block.bytes, "not yet"});
  }
  print(out, spec, rows);
}

std::vector<BlockUse> ProgramSet::block_uses() const {
  std::vector<BlockUse> rows;
  for (const Block& block : impl_->blocks)
    rows.push_back({block.name(), block.bytes(), block.pinned()});
  for (const auto& p : impl_->programs) {
    for (const DeviceStatus& status : p->impl_->device_status) {
      const Block &there = status.there(), &here = status.here();
      rows.push_back({there.name() + graph::suffix(there.space()), there.bytes(), there.pinned()});
      rows.push_back({here.name(), here.bytes(), here.pinned()});
    }
  }
  return rows;
}

void ProgramSet::print_table(std::ostream& out, std::string_view program) const {
  const std::vector<BlockUse> rows = block_uses();
  for (const auto& p : impl_->programs) {
    if (p->name() == program) print(out, p->spec(), rows);
  }
}

void ProgramSet::explain(std::ostream& out) const {
  for (const auto& program : impl_->programs) program->explain(out);
}

void Program::explain(std::ostream& out) const {
  const ProgramSpec& spec = impl_->spec;
  std::size_t edges = 0;
  for (const graph::Task& task : spec.schedule.tasks) edges += task.predecessors.size();
  out << fmt::format(
      "program '{}': {} ops in {} tasks, {} data edges, {} reuse edges, {} handle classes, {} task "
      "sets\n",
      spec.name, spec.graph[graph::Graph::body].ops.size(), spec.schedule.tasks.size(), edges,
      spec.plan.reuse_edges.size(), impl_->guarded.classes.size(), impl_->sets.size());
  out << fmt::format("  critical path {:.0f} µs estimated ({:.0f} µs without the reuse edges)\n",
                     spec.plan.critical_path, spec.plan.critical_path_without);
  out << fmt::format("  costs estimated from the target profile '{}'\n", spec.target.name);
  for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
    const graph::Task& task = spec.schedule.tasks[t];
    std::string after;
    for (graph::TaskId p : task.predecessors) after += fmt::format(" {}", p.index);
    for (const plan::TaskEdge& edge : spec.plan.reuse_edges) {
      if (edge.after.index == t) after += fmt::format(" {}(reuse)", edge.before.index);
    }
    const auto lane = task.lane < 0 ? std::string("all lanes") : fmt::format("lane {}", task.lane);
    out << fmt::format(
        "  task {:>2}  {}{}, {}, ~{:.0f} µs, {} handle classes{}{}\n", t, to_string(task.phase),
        task.staging ? " (staging)" : "", lane, task.microseconds, impl_->guarded.uses[t].size(),
        recording(impl_->sets.front().bodies[t]), after.empty() ? "" : ", after" + after);
    for (graph::OpId id : task.ops) {
      const graph::Op& op = spec.graph[id];
      const graph::OpView view(spec.graph, op);
      const std::string shape = op.results.empty() ? "" : " " + to_string(view.result(0).shape);
      out << fmt::format("           {:<34} {:<8}{:<20} ~{:.1f} µs\n",
                         fmt::format("{} {}", op.name(), op.where), op.kernel, shape,
                         spec.target.microseconds(view));
    }
  }
  out << "  handle classes\n";
  for (const plan::HandleClass& cls : impl_->guarded.classes) {
    const ProgramSet::Impl::BlockGroup& group = impl_->set.groups[cls.block];
    out << fmt::format("    {:<24} {:>10} … {:<10} {}\n",
                       group.owner.empty() ? group.name : group.owner + "/" + group.name, cls.begin,
                       cls.end, cls.ordered ? "" : "ordered by edges alone, declared as read");
  }
}

}  // namespace arenite::runtime
