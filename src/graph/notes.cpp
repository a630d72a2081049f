#include "src/graph/notes.hpp"

#include <algorithm>
#include <array>

namespace arenite::graph {

std::string result_name(const Op& op, std::size_t i, std::size_t count) {
  std::string name(op.where.empty() ? op.name() : op.where);
  // A layer has one forward op and several backward ones.
  if (op.phase == Phase::backward && !op.where.empty()) name += "." + std::string(op.name());
  if (count != 1) {
    const auto& names = op.definition->results;
    name += "." + (i < names.size() ? names[i] : std::to_string(i));
  }
  if (op.lane >= 0) name += "@" + std::to_string(op.lane);
  return name;
}

std::string parameter_name(const Op& op, std::size_t i) {
  std::string name(op.where.empty() ? op.name() : op.where);
  const auto& names = op.definition->parameter_names;
  if (names.empty()) {
    name += "." + std::to_string(i);
  } else if (i < names.size()) {
    name += "." + names[i];
    // The last name may stand for many.
  } else {
    name += "." + names.back() + std::to_string(i + 1 - names.size());
  }
  if (op.lane >= 0) name += "@" + std::to_string(op.lane);
  return name;
}

std::string workspace_name(const Op& op) {
  std::string name(op.name());
  if (!op.where.empty()) name += " '" + op.where + "'";
  if (op.lane >= 0) name += " (lane " + std::to_string(op.lane) + ")";
  return name + ".workspace";
}

StorageClass result_class(Phase phase) noexcept {
  return phase == Phase::backward || phase == Phase::update ? StorageClass::gradient
                                                            : StorageClass::activation;
}

ValueId add_with_storage(Graph& graph, Value value, StorageClass cls, const Space& space) {
  value.storage = graph.add_storage({.name = value.name,
                                     .cls = cls,
                                     .space = space,
                                     .bytes = byte_size(value.type, value.shape, value.layout)});
  return graph.add_value(std::move(value));
}

void add_workspace(Graph& graph, OpId id, std::int64_t bytes, const Space& space) {
  graph[id].workspace = add_with_storage(graph,
                                         {.name = workspace_name(graph[id]),
                                          .type = DType::uint8,
                                          .shape = Shape{bytes},
                                          .producer = id},
                                         StorageClass::workspace, space);
}

const char* kind_of(AttributeType type) noexcept {
  constexpr const char* kinds[] = {"an integer", "a number", "a text", "a list of integers"};
  return kinds[static_cast<std::size_t>(type)];
}

std::string expected_attributes(const OperatorDefinition& definition) {
  std::string known;
  for (const AttributeSchema& schema : definition.attributes)
    known += (known.empty() ? "one of " : ", ") + schema.name;
  return known.empty() ? "no attributes" : known;
}

std::vector<ValueId> declared_values(const Graph& graph) {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    if (graph[ValueId(i)].is_declared()) all.emplace_back(i);
  }
  return all;
}

const std::vector<Declaration>& declarations() {
  static const std::vector<Declaration> all{{"InputTensor", StorageClass::input},
                                            {"ConstantTensor", StorageClass::constant},
                                            {"BufferTensor", StorageClass::buffer},
                                            {"ParameterTensor", StorageClass::parameter},
                                            {"StateTensor", StorageClass::optimizer_state}};
  return all;
}

bool needs_quotes(std::string_view name) noexcept {
  // Words of the grammar, present and foreseen.
  constexpr std::array<std::string_view, 7> reserved{"_",     "result", "Tensor", "else",
                                                     "yield", "grad",   "train"};
  const auto& declared = declarations();
  return !is_name(name) || std::find(reserved.begin(), reserved.end(), name) != reserved.end() ||
         std::any_of(declared.begin(), declared.end(),
                     [&](const Declaration& d) { return d.word == name; });
}

void apply(Graph& graph, ValueId id, const ValueNotes& notes, bool is_view) {
  Value& value = graph[id];
  if (notes.name) value.name = *notes.name;
  if (notes.batch) value.batch = *notes.batch;
  if (notes.halo) {
    if (*notes.halo < 0 || *notes.halo > 1 << 20) {
      fail({.found = "a halo of " + std::to_string(*notes.halo), .expected = "0 to 1048576"});
    }
    value.layout.halo = static_cast<int>(*notes.halo);
  }
  if (is_view) {
    if (notes.storage || notes.cls || notes.space || notes.bytes || notes.offset || notes.in ||
        !notes.holds.empty()) {
      fail({.found = "a note on the storage of a view",
            .expected = "such notes on its owner",
            .hint = "a view lies in its owner's storage"});
    }
    return;
  }
  Storage& storage = graph.storage(value.storage);
  storage.name = notes.storage.value_or(value.name);
  if (notes.cls) storage.cls = *notes.cls;
  if (notes.space) storage.space = *notes.space;
  // Far from overflow, as Shape's own limit is.
  constexpr std::int64_t limit = std::int64_t{1} << 60;
  for (const auto& number : {notes.offset, notes.bytes}) {
    if (number && (*number < 0 || *number > limit)) {
      fail({.found = std::to_string(*number) + " bytes", .expected = "0 to 2^60"});
    }
  }
  value.offset = notes.offset.value_or(0);
  storage.bytes =
      notes.bytes.value_or(value.offset + byte_size(value.type, value.shape, value.layout));
}

}  // namespace arenite::graph
