#include "src/graph/passes/rebuild.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>

namespace arenite::graph {

Readers::Readers(const Graph& graph)
    : graph_(graph), readers_(graph.value_count()), is_output_(graph.value_count()) {
  for (OpId id : graph[Graph::body].ops) {
    for (ValueId operand : graph[id].operands) {
      if (operand) readers_[operand.index].push_back(id);
    }
  }
  for (ValueId output : graph.outputs) is_output_[output.index] = true;
  if (graph.training) is_output_[graph.training->loss.index] = true;
}

bool Readers::only_one(ValueId id) const {
  const StorageClass cls = graph_.root_storage(id).cls;
  return of(id).size() == 1 && !is_output_.at(id.index) &&
         (cls == StorageClass::activation || cls == StorageClass::gradient);
}

bool is_selected(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph[OpId(i)];
    if (!op.kernel.empty() || op.workspace) return true;
  }
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (graph.storage(StorageId(i)).merged_into) return true;
  }
  return false;
}

void expect_before_select(const Graph& graph, std::string_view pass) {
  for (OpId id : graph[Graph::body].ops) {
    if (graph[id].kernel.empty()) continue;
    fail({.found = std::string(pass) + " on a graph whose ops have kernels",
          .expected = "a graph before `select`",
          .where = describe(graph, id)});
  }
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (!graph.storage(StorageId(i)).merged_into) continue;
    fail({.found = std::string(pass) + " on a graph with results in place",
          .expected = "a graph before `in_place`",
          .where = "storage '" + graph.storage(StorageId(i)).name + "'"});
  }
}

bool overwritten_between(const Graph& graph, OpId reader, OpId first, OpId last,
                         std::span<const OpId> except) {
  const auto& ops = graph[Graph::body].ops;
  const auto meets = [](const Access& a, const Access& b) {
    return a.storage == b.storage && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  };
  const auto mine = accesses(graph, reader);
  for (auto at = std::find(ops.begin(), ops.end(), first) + 1; *at != last; ++at) {
    if (std::find(except.begin(), except.end(), *at) != except.end()) continue;
    for (const Access& theirs : accesses(graph, *at)) {
      const bool collides = std::any_of(mine.begin(), mine.end(), [&](const Access& a) {
        return a.reads && theirs.writes && meets(a, theirs);
      });
      if (collides) return true;
    }
  }
  return false;
}

bool only_reads(const Op& op) {
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i] && op.effect(i) != Effect::read) return false;
  }
  return op.regions.empty();
}

void copy_placement(const Graph& source, ValueId original, Graph& target, ValueId copy) {
  const Value& from = source[original];
  Value& value = target[copy];
  Storage& storage = target.storage(value.storage);
  value.layout = from.layout;
  value.batch = from.batch;
  storage.cls = source.storage(from.storage).cls;
  storage.space = source.storage(from.storage).space;
  storage.bytes = byte_size(value.type, value.shape, value.layout);
}

ValueId copy_declared(const Graph& source, ValueId id, Builder& builder) {
  const Value& value = source[id];
  const Storage& storage = source.storage(value.storage);
  const ValueId copy =
      builder.declare(value.name, value.type, value.shape, storage.cls, storage.space);
  copy_placement(source, id, builder.graph(), copy);
  builder.graph()[copy].size_names = value.size_names;
  return copy;
}

void copy_op(const Graph& source, OpId id, int lane, std::vector<ValueId>& map, Builder& builder) {
  copy_op(source, id, lane, source[id].attributes, map, builder);
}

void copy_op(const Graph& source, OpId id, int lane, const Attributes& attributes,
             std::vector<ValueId>& map, Builder& builder) {
  const Op& op = source[id];
  std::vector<ValueId> operands;
  for (ValueId operand : op.operands) operands.push_back(operand ? map[operand.index] : ValueId{});
  builder.context = {.phase = op.phase, .lane = lane, .where = op.where};
  const auto results = builder.add(op.name(), operands, attributes);
  Graph& target = builder.graph();
  for (std::size_t i = 0; i < results.size(); ++i) {
    map[op.results[i].index] = results[i];
    target[results[i]].name = source[op.results[i]].name;
    const bool view = std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
      return operand && target[operand].storage == target[results[i]].storage;
    });
    if (view) continue;  // lies as its owner does
    copy_placement(source, op.results[i], target, results[i]);
    target.storage(target[results[i]].storage).name =
        source.storage(source[op.results[i]].storage).name;
  }
}

Graph rebuild(const Graph& source, const OperatorTable& table, const Replace& replace) {
  return rebuild(source, table, source[Graph::body].ops, replace);
}

Graph rebuild(const Graph& source, const OperatorTable& table, std::span<const OpId> order,
              const Replace& replace) {
  Graph target;
  Builder builder(target, table);
  std::vector<ValueId> map(source.value_count());
  for (std::size_t i = 0; i < source.value_count(); ++i) {
    if (source[ValueId(i)].is_declared()) map[i] = copy_declared(source, ValueId(i), builder);
  }
  for (OpId id : order) {
    if (!replace(id, map, builder)) copy_op(source, id, source[id].lane, map, builder);
  }
  for (ValueId output : source.outputs) target.outputs.push_back(map[output.index]);
  if (source.training) {
    target.training = source.training;
    target.training->loss = map[source.training->loss.index];
    for (ValueId& parameter : target.training->parameters) parameter = map[parameter.index];
  }
  verify(target);
  return target;
}

}  // namespace arenite::graph
