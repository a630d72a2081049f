// Copying values and ops of one graph into another, for passes that build their graph anew.
#pragma once

#include <arenite/graph/builder.hpp>

#include <vector>

namespace arenite::graph {

/// Gives a copy the storage class, space and layout that the original was given by hand.
inline void copy_placement(const Graph& source, ValueId original, Graph& target, ValueId copy) {
  const Value& from = source[original];
  Value& value = target[copy];
  Storage& storage = target.storage(value.storage);
  value.layout = from.layout;
  storage.cls = source.storage(from.storage).cls;
  storage.space = source.storage(from.storage).space;
  storage.bytes = byte_size(value.type, value.shape, value.layout);
}

inline ValueId copy_declared(const Graph& source, ValueId id, Builder& builder) {
  const Value& value = source[id];
  const Storage& storage = source.storage(value.storage);
  const ValueId copy =
      builder.declare(value.name, value.type, value.shape, storage.cls, storage.space);
  copy_placement(source, id, builder.graph(), copy);
  return copy;
}

/// Appends a copy of an op in its own phase and with its own origin; `map` leads from the source's
/// values to the copies and learns the results.
inline void copy_op(const Graph& source, OpId id, int lane, std::vector<ValueId>& map,
                    Builder& builder) {
  const Op& op = source[id];
  std::vector<ValueId> operands;
  for (ValueId operand : op.operands) operands.push_back(operand ? map[operand.index] : ValueId{});
  builder.context = {.phase = op.phase, .lane = lane, .where = op.where};
  const auto results = builder.add(op.name(), operands, op.attributes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    map[op.results[i].index] = results[i];
    bool view = false;  // a view lies as its owner does
    for (ValueId operand : operands) {
      view = view ||
             (operand && builder.graph()[operand].storage == builder.graph()[results[i]].storage);
    }
    if (!view) copy_placement(source, op.results[i], builder.graph(), results[i]);
  }
}

}  // namespace arenite::graph
