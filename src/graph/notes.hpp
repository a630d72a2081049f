// What printer and parser agree on: defaults that the text form leaves out, and the notes that say
// otherwise.
#pragma once

#include <arenite/graph/operator.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/graph/lexer.hpp"

namespace arenite::graph {

/// Name of an op's i-th of `count` results unless someone renames it.
std::string result_name(const Op& op, std::size_t i, std::size_t count);
/// Name of the i-th parameter of an op's region unless someone renames it.
std::string parameter_name(const Op& op, std::size_t i);
/// Name of an op's workspace unless someone renames it.
std::string workspace_name(const Op& op);
/// Class of what an op of this phase produces, unless someone says otherwise.
StorageClass result_class(Phase phase) noexcept;

/// Adds a value with a storage of its own, which has its name and its bytes.
ValueId add_with_storage(Graph& graph, Value value, StorageClass cls, const Space& space = {});
/// Gives an op scratch bytes.
void add_workspace(Graph& graph, OpId id, std::int64_t bytes, const Space& space = {});

/// "float32[8, 26]", of a value or of what an op would produce.
template <class Typed>
std::string type_text(const Typed& typed) {
  return std::string(to_string(typed.type)) + to_string(typed.shape);
}
/// "a list of integers". AttributeValue has the same types in the same order.
const char* kind_of(AttributeType type) noexcept;
/// "one of stride, padding": what could stand in place of an attribute that nobody knows.
std::string expected_attributes(const OperatorDefinition& definition);

/// What scripts declare, in the order of ids.
std::vector<ValueId> declared_values(const Graph& graph);

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
