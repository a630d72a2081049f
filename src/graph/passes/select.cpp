#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/graph/passes/verify_pass.hpp"
#include "src/graph/values.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

/// Views have none, and what holds regions runs those of the ops in it.
bool has_kernel(const Graph& graph, OpId id) {
  return graph[id].regions.empty() && !is_view_op(graph, id);
}

/// The halo that a value's readers agree on: the widest wish, or none when one of them cannot have
/// any.
std::vector<int> agreed_halos(const Graph& graph, const KernelSelector& selector) {
  constexpr int unasked = 0, refused = -1;
  std::vector<int> halo(graph.value_count(), unasked);
  for (OpId id : nested_ops(graph)) {
    const Op& op = graph[id];
    const OpView view(graph, op);
    const bool moves_nothing = !has_kernel(graph, id);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!op.operands[i]) continue;
      int& known = halo[op.operands[i].index];
      const int wish = moves_nothing ? refused : selector.wanted_halo(view, op.kernel, i);
      known = wish == refused || known == refused ? refused : std::max(known, wish);
    }
  }
  // Callers see plain tensors, and so do both sides of a block's end.
  for (ValueId output : graph.outputs) halo[output.index] = refused;
  for (OpId id : nested_ops(graph)) {
    if (graph[id].regions.empty()) continue;
    for (ValueId result : graph[id].results) halo[result.index] = refused;
    for (RegionId region : graph[id].regions) {
      for (ValueId parameter : graph[region].parameters) halo[parameter.index] = refused;
      for (ValueId yielded : graph[region].results) {
        if (yielded) halo[yielded.index] = refused;
      }
    }
  }
  return halo;
}

void note_refusals(const Graph& graph, OpId id, const std::vector<Refusal>& refused,
                   Remarks& remarks) {
  for (const auto& [kernel, why] : refused)
    remarks.left.push_back({describe(graph, id) + " by " + kernel, std::string(why)});
}

/// Refuses a kernel that knows nothing of a halo that one of the op's values has.
void check_halos(const Graph& graph, OpId id, const std::string& kernel,
                 const KernelSelector& selector, const std::string& expected) {
  const OpView view(graph, graph[id]);
  const auto refuse = [&](const Value& value, const std::string& what) {
    fail({.found = "kernel '" + kernel + "' cannot " + what + " the halo of " +
                   std::to_string(value.layout.halo) + " of '" + value.name + "'",
          .expected = expected,
          .where = describe(graph, id)});
  };
  for (std::size_t i = 0; i < view.operand_count(); ++i) {
    if (view.has_operand(i) && view.operand(i).layout.halo > 0 &&
        selector.wanted_halo(view, kernel, i) < 0)
      refuse(view.operand(i), "read past");
  }
  for (ValueId result : graph[id].results) {
    if (graph[result].layout.halo > 0 && !selector.writes_halo(view, kernel))
      refuse(graph[result], "write");
  }
}

/// The kernel of an op whose values have their halos now.
std::string settle(const Graph& graph, OpId id, const KernelSelector& selector, Remarks* remarks) {
  const OpView view(graph, graph[id]);
  const Support support = selector.supports(view, graph[id].kernel);
  if (support) return graph[id].kernel;
  if (remarks != nullptr) note_refusals(graph, id, {{graph[id].kernel, support.why()}}, *remarks);
  // Halos were agreed with the first kernel; another may know nothing of them.
  std::string kernel = selector.choose(view);
  check_halos(graph, id, kernel, selector,
              "a kernel that runs with the halos agreed on with '" + graph[id].kernel + "'");
  return kernel;
}

}  // namespace

OpId without_kernel(const Graph& graph) {
  const std::vector<OpId> ops = nested_ops(graph);
  const auto found = std::ranges::find_if(
      ops, [&](OpId id) { return has_kernel(graph, id) && graph[id].kernel.empty(); });
  return found == ops.end() ? OpId{} : *found;
}

void check_kernels(const Graph& graph, const KernelSelector& selector) {
  for (OpId id : nested_ops(graph)) {
    const Op& op = graph[id];
    const OpView view(graph, op);
    if (op.kernel.empty() || !selector.knows(view, op.kernel)) continue;
    const auto refuse = [&](const std::string& what, const std::string& expected) {
      fail({.found = "kernel '" + op.kernel + "' " + what,
            .expected = expected,
            .where = describe(graph, id),
            .hint = "without notes of kernels all are chosen"});
    };
    if (const Support support = selector.supports(view, op.kernel); !support)
      refuse("for what it does not take: " + std::string(support.why()), "one that runs it");
    check_halos(graph, id, op.kernel, selector, "a kernel that knows of it, or no halo");
    const std::int64_t needs = selector.workspace(view, op.kernel);
    const std::int64_t has = op.workspace ? graph[op.workspace].shape.elements() : 0;
    if (has < needs) {
      refuse("with a workspace of " + std::to_string(has) + " bytes",
             "at least " + std::to_string(needs));
    }
  }
}

void select(Graph& graph, const KernelSelector& selector, Remarks* remarks) {
  std::vector<OpId> ops = nested_ops(graph);
  std::erase_if(ops, [&](OpId id) { return !has_kernel(graph, id); });
  for (OpId id : ops) {
    graph[id].kernel = selector.choose({graph, graph[id]});
    if (remarks != nullptr)
      note_refusals(graph, id, selector.refused({graph, graph[id]}), *remarks);
  }

  const std::vector<int> halo = agreed_halos(graph, selector);
  for (OpId id : ops) {
    const OpView view(graph, graph[id]);
    if (!selector.writes_halo(view, graph[id].kernel)) continue;
    for (ValueId result : graph[id].results) {
      Value& value = graph[result];
      if (value.shape.rank() != 4 || halo[result.index] <= 0) continue;
      if (graph.storage(value.storage).merged_into) continue;  // it lies as the old version does
      value.layout.halo = halo[result.index];
      graph.storage(value.storage).bytes = byte_size(value.type, value.shape, value.layout);
    }
  }

  // Layouts are settled: a kernel may need less scratch now.
  for (OpId id : ops) {
    const OpView view(graph, graph[id]);
    graph[id].kernel = settle(graph, id, selector, remarks);
    if (remarks != nullptr) remarks->done.push_back({describe(graph, id), graph[id].kernel});
    const std::int64_t bytes = selector.workspace(view, graph[id].kernel);
    if (bytes == 0) continue;
    // Shape's own limit, which would not say whose bytes these are.
    if (bytes > std::int64_t{1} << 48) {
      fail({.found = "kernel '" + graph[id].kernel + "' with a workspace of " +
                     std::to_string(bytes) + " bytes",
            .expected = "at most 2^48",
            .where = describe(graph, id)});
    }
    add_workspace(graph, id, bytes, space_of(graph, graph[id]));
  }
  verify_pass(graph);
}

}  // namespace arenite::graph
