#include <arenite/graph/regions.hpp>

#include <algorithm>

#include "src/graph/flaw.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

void check_attributes(const Graph& graph, OpId id) {
  const Op& op = graph[id];
  for (const AttributeSchema& schema : op.definition->attributes) {
    const AttributeValue* value = op.attributes.find(schema.name);
    if (!value || value->index() != static_cast<std::size_t>(schema.type)) {
      op_flaw(graph, id,
              value ? "attribute " + schema.name + "=" + to_string(*value)
                    : "no attribute '" + schema.name + "'",
              kind_of(schema.type));
    }
  }
  for (const auto& [name, value] : op.attributes.items()) {
    const auto& schemas = op.definition->attributes;
    if (std::ranges::find(schemas, name, &AttributeSchema::name) == schemas.end()) {
      op_flaw(graph, id, "unknown attribute '" + name + "'", "attributes of the operator's schema");
    }
  }
}

void check_view(const Graph& graph, OpId id, std::size_t result, const ViewOf& view) {
  const Op& op = graph[id];
  if (view.operand >= op.operands.size() || !op.operands[view.operand]) {
    op_flaw(graph, id, "a view of operand " + std::to_string(view.operand),
            "an operand that is there");
  }
  const ValueId owner_id = op.operands[view.operand];
  const Value& value = graph[op.results[result]];
  const Value& owner = graph[owner_id];
  if (value.storage != owner.storage || value.offset != owner.offset + view.offset) {
    value_flaw(graph, op.results[result],
               "a view at offset " + std::to_string(value.offset) + " of storage #" +
                   std::to_string(value.storage.index),
               "offset " + std::to_string(owner.offset + view.offset) + " of storage #" +
                   std::to_string(owner.storage.index) + ", that of its owner '" + owner.name +
                   "'");
  }
  const std::int64_t bytes = byte_size(value.type, value.shape, value.layout);
  const std::int64_t room = byte_size(owner.type, owner.shape, owner.layout);
  if (view.offset < 0 || bytes > room || view.offset > room - bytes) {
    value_flaw(graph, op.results[result],
               std::to_string(bytes) + " bytes at offset " + std::to_string(view.offset) +
                   " of its owner '" + owner.name + "' of " + std::to_string(room) + " bytes",
               "a view inside its owner");
  }
  const bool plain = value.layout.halo == 0 && owner.layout.halo == 0;
  if (!plain &&
      (value.layout != owner.layout || value.shape.rank() != 4 || owner.shape.rank() != 4 ||
       !std::equal(value.shape.begin() + 1, value.shape.end(), owner.shape.begin() + 1))) {
    value_flaw(graph, op.results[result],
               "a view of shape " + to_string(value.shape) + " and halo " +
                   std::to_string(value.layout.halo) + " over shape " + to_string(owner.shape) +
                   " and halo " + std::to_string(owner.layout.halo),
               "the same halo and planes, or no halo at all");
  }
}

void check_regions(const Graph& graph, OpId id) {
  const Op& op = graph[id];
  const OperatorDefinition& definition = *op.definition;
  if (op.regions.size() != definition.regions.size()) {
    op_flaw(graph, id, std::to_string(op.regions.size()) + " regions",
            std::to_string(definition.regions.size()));
  }
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    std::vector<ResultType> types;
    try {
      if (definition.parameters) types = definition.parameters({graph, op}, r);
    } catch (const Error& error) {
      op_flaw(graph, id, error.text().found, error.text().expected);
    }
    const Region& region = graph[op.regions[r]];
    const std::string name = "region '" + definition.regions[r] + "' with ";
    if (region.parameters.size() != types.size()) {
      op_flaw(graph, id, name + std::to_string(region.parameters.size()) + " parameters",
              std::to_string(types.size()));
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Value& value = graph[region.parameters[i]];
      if (value.type == types[i].type && value.shape == types[i].shape) continue;
      op_flaw(graph, id, name + "parameter '" + value.name + "' of " + type_text(value),
              type_text(types[i]));
    }
    const bool whole = std::all_of(region.results.begin(), region.results.end(),
                                   [](ValueId result) { return static_cast<bool>(result); });
    if (!whole && definition.control == Control::none)
      op_flaw(graph, id, name + "a result left out", "all of them");
  }
}

/// Values are handed over byte by byte, and none may meet another on its way out of a loop.
void check_handovers(const Graph& graph, OpId id) {
  const Op& op = graph[id];
  std::vector<Handover> all = handovers_at_entry(graph, op);
  const std::vector<Handover> exits = handovers_at_exit(graph, op);
  all.insert(all.end(), exits.begin(), exits.end());
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    const auto ends = handovers_at_end(graph, op, r);
    all.insert(all.end(), ends.begin(), ends.end());
  }
  for (const auto& [from, into, staged] : all) {
    if (graph[from].layout == graph[into].layout) continue;
    op_flaw(graph, id,
            "'" + graph[from].name + "' with a halo of " + std::to_string(graph[from].layout.halo) +
                " handed over to '" + graph[into].name + "' with one of " +
                std::to_string(graph[into].layout.halo),
            "equal halos");
  }
  for (const auto& [from, into, staged] : exits) {
    for (const ValueId carried : graph[op.regions[0]].parameters) {
      if (graph.root(carried) != graph.root(into)) continue;
      op_flaw(graph, id,
              "result '" + graph[into].name + "' in the bytes of parameter '" +
                  graph[carried].name + "'",
              "those of '" + graph[from].name + "', or of no parameter");
    }
  }
}

}  // namespace

void verify_op(const Graph& graph, OpId id, Op& scratch) {
  const Op& op = graph[id];
  const OperatorDefinition& definition = *op.definition;
  if (op.lane < Op::shared_lane)
    op_flaw(graph, id, "lane " + std::to_string(op.lane), "-1 (shared) or more");

  const std::size_t given = op.operands.size();
  if (!definition.takes(given)) {
    op_flaw(graph, id, std::to_string(given) + " operands", definition.expected_operands());
  }
  for (std::size_t i = 0; i < given; ++i) {
    if (!op.operands[i] && !definition.operand_schema(i).optional) {
      op_flaw(graph, id, "no operand '" + definition.operand_schema(i).name + "'",
              "a value: it is not optional");
    }
  }
  check_attributes(graph, id);
  check_regions(graph, id);

  scratch = op;  // the shape rule sees an op without results
  scratch.results.clear();
  std::vector<ResultType> types;
  std::optional<ResultViews> views;
  try {
    types = infer(OpView(graph, scratch));
    views.emplace(graph, op);
  } catch (const Error& error) {
    op_flaw(graph, id, error.text().found, error.text().expected);
  }
  if (types.size() != op.results.size()) {
    op_flaw(graph, id, std::to_string(op.results.size()) + " results",
            std::to_string(types.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Value& value = graph[op.results[i]];
    if (value.type != types[i].type || value.shape != types[i].shape) {
      op_flaw(graph, id, "result '" + value.name + "' is " + type_text(value), type_text(types[i]));
    }
    if ((*views)[i]) check_view(graph, id, i, *(*views)[i]);
  }
  if (definition.control != Control::none) check_handovers(graph, id);
}

}  // namespace arenite::graph
