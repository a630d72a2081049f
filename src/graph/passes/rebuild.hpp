// Copying values and ops of one graph into another, for passes that build their graph anew. All of
// them run before `select`: kernels, workspaces and in-place results are not carried over.
#pragma once

#include <arenite/graph/builder.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace arenite::graph {

/// Throws Error where `select` has been over the graph.
void expect_no_kernels(const Graph& graph, std::string_view pass);

/// Throws Error where `select`, or a pass that lets results live in operands' bytes, have been over
/// the graph.
void expect_before_select(const Graph& graph, std::string_view pass);

/// True when a result has the storage class, space and layout that its op's phase gives it, and
/// nobody chose others by hand.
bool as_made(const Graph& graph, ValueId result);

/// Gives a copy the storage class, space, layout, batch and bytes around it that the original was
/// given by hand.
void copy_placement(const Graph& source, ValueId original, Graph& target, ValueId copy);
ValueId copy_declared(const Graph& source, ValueId id, Builder& builder);

/// The operand, or none where it is one of the last and was left out.
inline ValueId operand_of(const Op& op, std::size_t i) {
  return i < op.operands.size() ? op.operands[i] : ValueId{};
}
/// Tells `map` where an op's results are now: those of an op that gives the same.
inline void map_results(const Op& op, const std::vector<ValueId>& made, std::vector<ValueId>& map) {
  for (std::size_t i = 0; i < op.results.size(); ++i) map[op.results[i].index] = made.at(i);
}
/// The copies of values, and none of none: `map` leads from the source's values there.
std::vector<ValueId> mapped(const std::vector<ValueId>& ids, const std::vector<ValueId>& map);

/// What a pass makes of one op, instead of a copy: it appends what it likes and tells `map` where
/// the op's results are now. Returns false for an op to be copied.
using Replace = std::function<bool(OpId, std::vector<ValueId>& map, Builder&)>;

/// Appends a copy of an op, with its blocks, in its own phase and with its own origin; `map` leads
/// from the source's values to the copies and learns the results. In another lane its blocks' ops
/// are too. Ops in its blocks are replaced or copied.
void copy_op(const Graph& source, OpId id, int lane, std::vector<ValueId>& map, Builder& builder,
             const Replace& replace = {});
/// The same with other attributes.
void copy_op(const Graph& source, OpId id, int lane, const Attributes& attributes,
             std::vector<ValueId>& map, Builder& builder, const Replace& replace = {});

/// Outputs, training and entries, of values that are copied.
void copy_ends(const Graph& source, const std::vector<ValueId>& map, Graph& target);

/// A graph with all declared values, the ops replaced or copied, those in blocks of copied ones
/// too, and the outputs.
Graph rebuild(const Graph& source, const OperatorTable& table, const Replace& replace);
/// The same with the body's in another order, which keeps what `dependencies` demands. Ops that it
/// leaves out are those that `replace` appends together with another one.
Graph rebuild(const Graph& source, const OperatorTable& table, std::span<const OpId> order,
              const Replace& replace);

/// Does what a pass has found in the graph: `count()` things, and what `replace` makes of each op.
template <class Found>
int rewrite(Graph& graph, const OperatorTable& table, const Found& found) {
  if (found.count() == 0) return 0;
  graph = rebuild(graph, table, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
    return found.replace(id, map, builder);
  });
  return found.count();
}

}  // namespace arenite::graph
