#include <arenite/graph/builder.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>

#include "src/base/refuse.hpp"
#include "src/graph/values.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

std::string title(const OperatorDefinition& definition, const OpContext& context) {
  return definition.name + (context.where.empty() ? "" : " '" + context.where + "'");
}

void check_operands(const Graph& graph, const Op& op, const OpContext& context) {
  const OperatorDefinition& definition = *op.definition;
  const std::size_t given = op.operands.size();
  if (!definition.takes(given)) {
    refuse(std::to_string(given) + " operands", definition.expected_operands(),
           title(definition, context));
  }
  for (std::size_t i = 0; i < given; ++i) {
    const ValueId operand = op.operands[i];
    const OperandSchema& schema = definition.operand_schema(i);
    if (!operand && schema.optional) continue;
    if (!operand || operand.index >= graph.value_count()) {
      refuse("operand '" + schema.name + "' names no value of this graph",
             "a value made by this graph's builder", title(definition, context));
    }
  }
}

/// Whether they are all that the operator has, as those of an op are.
bool are_complete(const OperatorDefinition& definition, const Attributes& given) {
  return given.items().size() == definition.attributes.size() &&
         std::ranges::all_of(definition.attributes, [&](const AttributeSchema& schema) {
           const AttributeValue* value = given.find(schema.name);
           return value && value->index() == static_cast<std::size_t>(schema.type);
         });
}

Attributes complete(const OperatorDefinition& definition, const Attributes& given,
                    const OpContext& context) {
  if (are_complete(definition, given)) return given;
  std::vector<std::pair<std::string, AttributeValue>> all;
  for (const AttributeSchema& schema : definition.attributes) {
    const AttributeValue* value = given.find(schema.name);
    if (!value && !schema.default_value) {
      refuse("no attribute '" + schema.name + "'", schema.name + "=…", title(definition, context));
    }
    AttributeValue chosen = value ? *value : *schema.default_value;
    const auto* integer = std::get_if<std::int64_t>(&chosen);
    if (schema.type == AttributeType::real && integer) chosen = static_cast<double>(*integer);
    if (value && chosen.index() != static_cast<std::size_t>(schema.type)) {
      refuse("attribute " + schema.name + "=" + to_string(*value), kind_of(schema.type),
             title(definition, context));
    }
    all.emplace_back(schema.name, std::move(chosen));
  }
  Attributes made(std::move(all));
  for (const auto& [name, value] : given.items()) {
    if (made.has(name)) continue;
    refuse("unknown attribute '" + name + "'", expected_attributes(definition),
           title(definition, context));
  }
  for (const auto& [name, names] : given.size_names()) made.set(name, *made.find(name), names);
  return made;
}

}  // namespace

GradientContext::GradientContext(Builder& builder, OpId op, std::vector<ValueId> result_gradients,
                                 std::vector<bool> wanted, std::size_t seed)
    : builder_(&builder),
      op_(op),
      result_gradients_(std::move(result_gradients)),
      operand_gradients_(wanted.size()),
      wanted_(std::move(wanted)),
      seed_(seed) {}

ValueId GradientContext::result_gradient(std::size_t i) {
  ValueId& gradient = result_gradients_.at(i);
  if (is_seed(i) && !gradient) {
    const Value like = builder_->graph()[result(i)];
    const auto dims = like.shape.dims();
    gradient = builder_->add1("full", {},
                              {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                               {"value", 1.0},
                               {"type", std::string(to_string(like.type))}});
  }
  return gradient;
}

OpView GradientContext::forward() const { return {builder_->graph(), builder_->graph()[op_]}; }
ValueId GradientContext::operand(std::size_t i) const {
  return builder_->graph()[op_].operands.at(i);
}
ValueId GradientContext::result(std::size_t i) const {
  return builder_->graph()[op_].results.at(i);
}

void GradientContext::set(std::size_t operand, ValueId gradient) {
  const Value& value = builder_->graph()[this->operand(operand)];
  const Value& given = builder_->graph()[gradient];
  if (value.shape != given.shape) {
    refuse(
        "a gradient of shape " + to_string(given.shape) + " for operand " + std::to_string(operand),
        "the operand's shape " + to_string(value.shape),
        "gradient of " + describe(builder_->graph(), op_));
  }
  operand_gradients_.at(operand) = gradient;
}

StorageClass Builder::result_class() const noexcept { return graph::result_class(context.phase); }

bool Builder::name_taken(StorageClass cls, const std::string& name) {
  for (; indexed_ < graph_->value_count(); ++indexed_) {
    const Value& value = (*graph_)[ValueId(indexed_)];
    if (value.is_declared()) names_.insert(value.name);
  }
  return names_.contains(name) && graph_->find(cls, name);
}

ValueId Builder::declare(std::string name, DType type, Shape shape, StorageClass cls, Space space) {
  if (name.empty()) refuse("a declared value with an empty name", "at least one character");
  if (name.find_first_of(",);") != std::string::npos)
    refuse("a value named '" + name + "'", "a name without ',', ')' or ';'");
  if (name_taken(cls, name)) {
    refuse("a second " + std::string(to_string(cls)) + " named '" + name + "'",
           "a name of its own for each of them");
  }
  return add_with_storage(*graph_, {.name = std::move(name), .type = type, .shape = shape}, cls,
                          space);
}

/// Runs an operator's rule; an Error of it gets the op's title.
template <class Rule>
auto Builder::within(const OperatorDefinition& definition, Rule rule) const {
  try {
    return rule();
  } catch (const Error& error) {
    ErrorText text = error.text();
    text.where = title(definition, context) + (text.where.empty() ? "" : ", " + text.where);
    throw Error(text);
  }
}

Op Builder::begin(std::shared_ptr<const OperatorDefinition> definition,
                  std::vector<ValueId> operands, const Attributes& attributes) const {
  Op op;
  op.definition = std::move(definition);
  op.operands = std::move(operands);
  op.phase = context.phase;
  op.lane = context.lane;
  op.where = context.where;
  check_operands(*graph_, op, context);
  op.attributes = complete(*op.definition, attributes, context);
  return op;
}

RegionId Builder::begin_region(std::string_view name, const std::vector<ValueId>& operands,
                               const Attributes& attributes, std::size_t index) {
  const Op op = begin(table_->at(name), operands, attributes);
  const OperatorDefinition& definition = *op.definition;
  if (index >= definition.regions.size()) {
    refuse("block " + std::to_string(index + 1),
           std::to_string(definition.regions.size()) + " of them", title(definition, context));
  }
  if (open_.size() == max_region_depth) {
    refuse("a block in " + std::to_string(open_.size()) + " others",
           "blocks nested at most " + std::to_string(max_region_depth) + " deep",
           title(definition, context));
  }
  std::vector<ResultType> types;
  if (definition.parameters) {
    types = within(definition, [&] { return definition.parameters({*graph_, op}, index); });
  }
  const RegionId region = graph_->add_region();
  for (std::size_t i = 0; i < types.size(); ++i) {
    Value value{.name = parameter_name(op, i),
                .type = types[i].type,
                .shape = types[i].shape,
                .parameter_of = region};
    (*graph_)[region].parameters.push_back(
        add_with_storage(*graph_, std::move(value), result_class()));
  }
  open_.push_back(region);
  return region;
}

void Builder::end_region(std::vector<ValueId> results) {
  if (open_.empty()) refuse("the end of a region", "one that was begun");
  (*graph_)[open_.back()].results = std::move(results);
  open_.pop_back();
}

std::vector<ValueId> Builder::add(std::string_view name, std::vector<ValueId> operands,
                                  Attributes attributes, std::vector<RegionId> regions) {
  return add(table_->at(name), std::move(operands), std::move(attributes), std::move(regions));
}

std::vector<ValueId> Builder::add(std::shared_ptr<const OperatorDefinition> of,
                                  std::vector<ValueId> operands, Attributes attributes,
                                  std::vector<RegionId> regions) {
  Op op = begin(std::move(of), std::move(operands), attributes);
  const OperatorDefinition& definition = *op.definition;
  op.regions = std::move(regions);
  if (op.regions.size() != definition.regions.size()) {
    refuse(std::to_string(op.regions.size()) + " blocks", std::to_string(definition.regions.size()),
           title(definition, context));
  }

  std::vector<ResultType> types;
  std::vector<std::optional<ViewOf>> views;
  const OpView view(*graph_, op);
  within(definition, [&] {
    types = infer(view);
    if (definition.views) views = definition.views(view);
  });
  views.resize(types.size());

  for (std::size_t i = 0; i < types.size(); ++i) {
    Value value{
        .name = result_name(op, i, types.size()), .type = types[i].type, .shape = types[i].shape};
    if (!views[i]) {
      op.results.push_back(add_with_storage(*graph_, std::move(value), result_class()));
      continue;
    }
    const Value& owner = (*graph_)[op.operands.at(views[i]->operand)];
    value.storage = owner.storage;
    value.offset = owner.offset + views[i]->offset;
    value.layout = owner.layout;
    op.results.push_back(graph_->add_value(std::move(value)));
  }
  const RegionId into = open_.empty() ? Graph::body : open_.back();
  return (*graph_)[graph_->add_op(std::move(op), into)].results;
}

ValueId Builder::add1(std::string_view name, std::vector<ValueId> operands, Attributes attributes) {
  std::vector<ValueId> results = add(name, std::move(operands), std::move(attributes));
  if (results.size() != 1) {
    refuse(
        "operator '" + std::string(name) + "' with " + std::to_string(results.size()) + " results",
        "exactly one");
  }
  return results.front();
}

}  // namespace arenite::graph
