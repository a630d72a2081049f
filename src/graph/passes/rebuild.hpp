// Copying values and ops of one graph into another, for passes that build their graph anew. All of
// them run before `select`: kernels, workspaces and in-place results are not carried over.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/dependencies.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace arenite::graph {

/// Who reads each value of a graph's body, and what others see of it.
class Readers {
 public:
  explicit Readers(const Graph& graph);

  /// The ops with the value as an operand, once for each operand.
  const std::vector<OpId>& of(ValueId id) const { return readers_.at(id.index); }
  /// One op reads the value, callers do not, and its storage is an activation's or a gradient's
  /// that nobody asked to last.
  bool only_one(ValueId id) const;
  bool unused(ValueId id) const { return of(id).empty() && !is_output_.at(id.index); }

 private:
  const Graph& graph_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<bool> is_output_;
};

/// Throws Error where `select` or `in_place` have been over the graph.
void expect_before_select(const Graph& graph, std::string_view pass);

/// True when an op of the body that stands between the two, and is none of `except`, writes bytes
/// that this op reads.
bool overwritten_between(const Graph& graph, OpId reader, OpId first, OpId last,
                         std::span<const OpId> except = {});

/// True when the op does nothing but read its operands and write its results.
bool only_reads(const Op& op);

/// Gives a copy the storage class, space, layout and batch that the original was given by hand.
void copy_placement(const Graph& source, ValueId original, Graph& target, ValueId copy);
ValueId copy_declared(const Graph& source, ValueId id, Builder& builder);

/// Appends a copy of an op in its own phase and with its own origin; `map` leads from the source's
/// values to the copies and learns the results.
void copy_op(const Graph& source, OpId id, int lane, std::vector<ValueId>& map, Builder& builder);
/// The same with other attributes.
void copy_op(const Graph& source, OpId id, int lane, const Attributes& attributes,
             std::vector<ValueId>& map, Builder& builder);

/// What a pass makes of one op, instead of a copy: it appends what it likes and tells `map` where
/// the op's results are now. Returns false for an op to be copied.
using Replace = std::function<bool(OpId, std::vector<ValueId>& map, Builder&)>;

/// A graph with all declared values, the body's ops replaced or copied, and the outputs; verified.
Graph rebuild(const Graph& source, const OperatorTable& table, const Replace& replace);
/// The same in another order, which keeps what `dependencies` demands. Ops that it leaves out are
/// those that `replace` appends together with another one.
Graph rebuild(const Graph& source, const OperatorTable& table, std::span<const OpId> order,
              const Replace& replace);

}  // namespace arenite::graph
