// What each kernel of a program works on: addresses in blocks, copies between the blocks of a
// control op, and, in the checked build, the ranges that it claims.
#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/runtime/program_impl.hpp"

#include <algorithm>

namespace arenite::runtime {

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

Claim Program::Impl::claim(const graph::Access& access, const plan::Placement& place,
                           std::size_t number) {
  const std::int64_t begin = place.offset + access.offset, end = begin + access.bytes;
  return {.first = set.owners[set.block_index(spec, place, number)].at(begin),
          .count = static_cast<std::size_t>((end - 1) / default_alignment -
                                            begin / default_alignment + 1),
          .owner = access.storage.index + 1,
          .reads = access.reads,
          .writes = access.writes};
}

std::vector<Claim> Program::Impl::claim(graph::ValueId id, bool writes, std::size_t number) {
  const graph::Value& value = spec.graph[id];
  const graph::Access access{.storage = spec.graph.root(id),
                             .offset = value.offset,
                             .bytes = byte_size(value.type, value.shape, value.layout),
                             .reads = !writes,
                             .writes = writes};
  const plan::Placement& place = spec.plan.placement(access.storage);
  if (place.external || access.bytes == 0 || !is_transient(spec.graph.storage(access.storage).cls))
    return {};
  return {claim(access, place, number)};
}

std::vector<Claim> Program::Impl::claims_of(graph::OpId id, std::size_t number) {
  const graph::Op& holder = spec.graph[id];
  std::vector<Claim> claims;
  if (!holder.regions.empty()) {
    // What happens within, the ops within claim when they run.
    for (graph::ValueId operand : holder.operands) {
      if (!operand) continue;
      for (const Claim& one : claim(operand, false, number)) claims.push_back(one);
    }
    return claims;
  }
  const auto& ops = spec.graph[graph::Graph::body].ops;
  const auto self = std::find(ops.begin(), ops.end(), id);
  for (const graph::Access& access : graph::accesses(spec.graph, id)) {
    const plan::Placement& place = spec.plan.placement(access.storage);
    if (place.external || !is_transient(spec.graph.storage(access.storage).cls)) continue;
    Claim made = claim(access, place, number);
    // Poisoning is for whoever writes the range first; an earlier op's bytes are not ours to spoil.
    // In a block every trip and every path has to write anew what it reads.
    const bool touched =
        self != ops.end() && std::any_of(ops.begin(), self, [&](graph::OpId earlier) {
          const auto others = graph::accesses(spec.graph, earlier);
          return std::any_of(others.begin(), others.end(), [&](const graph::Access& other) {
            return other.storage == access.storage && other.offset < access.offset + access.bytes &&
                   other.offset + other.bytes > access.offset;
          });
        });
    if (access.writes && !access.reads && !touched) {
      const std::size_t block = set.block_index(spec, place, number);
      made.poisoned = set.blocks[block].data() + place.offset + access.offset;
      made.size = static_cast<std::size_t>(access.bytes);
    }
    claims.push_back(made);
  }
  return claims;
}

}  // namespace arenite::runtime
