// What printer and parser agree on: words for declarations, and the notes that say where a value is
// not what values.hpp makes it.
#pragma once

#include <arenite/graph/graph.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/lexer.hpp"

namespace arenite::graph {

struct Declaration {
  std::string_view word;
  StorageClass cls;
};

/// InputTensor, ConstantTensor, …: the classes that have a declaration of their own.
const std::vector<Declaration>& declarations();
/// True when an operator of this name has to stand in quotes.
bool needs_quotes(std::string_view operator_name) noexcept;

/// Notes on one value.
struct ValueNotes {
  std::optional<std::string> name, storage, batch;
  std::optional<StorageClass> cls;
  std::optional<Space> space;
  std::optional<std::int64_t> halo, bytes, offset, workspace;
  std::optional<Token> in;   ///< refers to the value whose bytes this one shares
  std::vector<Token> holds;  ///< refer to values whose bytes lie in this one's
};

/// Notes on one op.
struct OpNotes {
  std::optional<Phase> phase;
  std::optional<int> lane;
  std::optional<std::string> kernel, where;
};

/// Applies notes, but for `in` and `holds`, to a value that the builder has just made. Throws
/// Error.
void apply(Graph& graph, ValueId id, const ValueNotes& notes, bool is_view);

}  // namespace arenite::graph
