// What StarPU guards of a program's bytes: few handles, each over bytes that the same tasks touch.
#include <arenite/graph/dependencies.hpp>
#include <arenite/plan/handle_classes.hpp>

#include "src/plan/task_order.hpp"
#include "src/runtime/counters.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace arenite::runtime {

namespace {

/// A handle takes StarPU some 5 KB: for programs that come and go a few have to do. What tasks do
/// side by side there is ordered by edges alone.
std::vector<plan::HandleClass> whole_blocks(const plan::HandleProblem& problem) {
  std::set<std::size_t> touched;
  for (const plan::HandleAccess& access : problem.accesses) touched.insert(access.block);
  std::vector<plan::HandleClass> classes;
  for (const std::size_t block : touched) {
    if (const std::int64_t bytes = problem.block_bytes[block]; bytes > 0)
      classes.push_back({.block = block, .begin = 0, .end = bytes, .ordered = false});
  }
  return classes;
}

}  // namespace

ProgramHandles::~ProgramHandles() {
  for (const auto& copies : handles) {
    for (starpu_data_handle_t handle : copies) starpu_data_unregister_no_coherency(handle);
  }
}

/// Other programs have handles of their own over the same bytes: they never run together.
void Program::Impl::make_handles() {
  plan::HandleProblem problem;
  problem.limit = starpu::max_buffers;
  for (const ProgramSet::Impl::BlockGroup& g : set.groups)
    problem.block_bytes.push_back(set.blocks[g.first].bytes());

  const std::size_t count = spec.schedule.tasks.size();
  for (std::size_t t = 0; t < count; ++t) {
    for (graph::OpId op : spec.schedule.tasks[t].ops) {
      for (const graph::Access& access : graph::accesses(spec.graph, op)) {
        const plan::Placement& place = spec.plan.placement(access.storage);
        if (place.external) continue;  // read-only memory of others: nothing for StarPU to guard
        // StarPU would want to bring it where the task runs. What crosses has edges.
        if (spec.plan.blocks[place.block].space != spec.schedule.tasks[t].space) continue;
        problem.accesses.push_back({.block = set.group(spec, place),
                                    .begin = place.offset,
                                    .end = place.offset + place.bytes,
                                    .task = t,
                                    .writes = access.writes});
      }
    }
  }
  problem.task_count = count;
  const plan::TaskOrder order(spec.schedule, spec.plan.reuse_edges);
  problem.ordered = [&](std::size_t a, std::size_t b) {
    return order.before(a, b) || order.before(b, a);
  };
  guarded.classes = set.is_made ? whole_blocks(problem) : plan::handle_classes(problem);

  for (const plan::HandleClass& c : guarded.classes) {
    const ProgramSet::Impl::BlockGroup& g = set.groups[c.block];
    auto& copies = guarded.handles.emplace_back();
    for (std::size_t copy = 0; copy < g.copies; ++copy) {
      starpu_data_handle_t handle = nullptr;
      std::byte* bytes = set.blocks[g.first + copy].data() + c.begin;
      const int node = g.space.device == DeviceKind::cpu
                           ? STARPU_MAIN_RAM
                           : static_cast<int>(starpu_worker_get_memory_node(
                                 static_cast<unsigned>(device_of(g.space).worker())));
      starpu_variable_data_register(&handle, node, reinterpret_cast<std::uintptr_t>(bytes),
                                    static_cast<std::size_t>(c.end - c.begin));
      starpu_data_set_sequential_consistency_flag(handle, 0);
      copies.push_back(handle);
      ++atomic_counters().handles;
    }
  }

  // Classes stand in (block, address) order, so the first that an access touches is found by
  // search.
  const auto& classes = guarded.classes;
  std::vector<std::map<std::size_t, bool>> touched(count);
  for (const plan::HandleAccess& access : problem.accesses) {
    auto it =
        std::lower_bound(classes.begin(), classes.end(), access,
                         [](const plan::HandleClass& c, const plan::HandleAccess& a) {
                           return c.block < a.block || (c.block == a.block && c.end <= a.begin);
                         });
    for (; it != classes.end() && it->block == access.block && it->begin < access.end; ++it) {
      bool& writes = touched[access.task][static_cast<std::size_t>(it - classes.begin())];
      writes = writes || access.writes;
    }
  }
  for (const auto& task : touched) {
    auto& list = guarded.uses.emplace_back();
    for (const auto& [index, writes] : task) list.push_back({index, writes});
  }
}

}  // namespace arenite::runtime
