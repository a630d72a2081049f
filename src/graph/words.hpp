// Types and attributes in words, for messages.
#pragma once

#include <arenite/graph/operator.hpp>

#include <string>

namespace arenite::graph {

/// "float32[8, 26]", of a value or of what an op would produce.
template <class Typed>
std::string type_text(const Typed& typed) {
  return std::string(to_string(typed.type)) + to_string(typed.shape);
}
/// "a list of integers". AttributeValue has the same types in the same order.
const char* kind_of(AttributeType type) noexcept;
/// What `train` and its groups name besides the optimizer's numbers.
bool is_training_setting(std::string_view name) noexcept;
/// "one of stride, padding": what could stand in place of an attribute that nobody knows.
std::string expected_attributes(const OperatorDefinition& definition);
/// The attribute that scripts have in braces behind a call: a text that must be given. nullptr:
/// none.
const AttributeSchema* formula_of(const OperatorDefinition& definition) noexcept;

}  // namespace arenite::graph
