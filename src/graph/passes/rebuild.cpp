#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/verify_pass.hpp"

#include <arenite/error.hpp>

#include "src/graph/values.hpp"

#include <algorithm>

namespace arenite::graph {

bool is_selected(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph[OpId(i)];
    if (!op.kernel.empty() || op.workspace) return true;
  }
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    const Storage& storage = graph.storage(StorageId(i));
    if (storage.merged_into || storage.space.device != DeviceKind::cpu) return true;
  }
  return false;
}

void expect_no_kernels(const Graph& graph, std::string_view pass) {
  for (std::size_t i = 0; i < graph.region_count(); ++i) {
    for (OpId id : graph[RegionId(i)].ops) {
      if (graph[id].kernel.empty()) continue;
      fail({.found = std::string(pass) + " on a graph whose ops have kernels",
            .expected = "a graph before `select`",
            .where = describe(graph, id)});
    }
  }
}

void expect_before_select(const Graph& graph, std::string_view pass) {
  expect_no_kernels(graph, pass);
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (!graph.storage(StorageId(i)).merged_into) continue;
    fail({.found = std::string(pass) + " on a graph with results in place",
          .expected = "a graph before `in_place`",
          .where = "storage '" + graph.storage(StorageId(i)).name + "'"});
  }
}

bool as_made(const Graph& graph, ValueId result) {
  const Storage& storage = graph.storage(graph[result].storage);
  return storage.cls == result_class(graph[graph[result].producer].phase) &&
         storage.space == Space{} && graph[result].layout == Layout{};
}

namespace {

/// A view lies as its owner does.
bool lies_in_operand(const Graph& graph, const Op& op, ValueId result) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
    return operand && graph[operand].storage == graph[result].storage;
  });
}

}  // namespace

void copy_placement(const Graph& source, ValueId original, Graph& target, ValueId copy) {
  const Value& from = source[original];
  const Storage& given = source.storage(from.storage);
  Value& value = target[copy];
  Storage& storage = target.storage(value.storage);
  value.layout = from.layout;
  value.batch = from.batch;
  storage.cls = given.cls;
  storage.space = given.space;
  storage.bytes = byte_size(value.type, value.shape, value.layout);
  if (from.producer && lies_in_operand(source, source[from.producer], original)) return;
  // A copy may have fewer rows, but what lies around them is as wide.
  value.offset = from.offset;
  storage.bytes += given.bytes - byte_size(from.type, from.shape, from.layout);
}

namespace {

/// The copy is called and placed as the original is.
void take_after(const Graph& source, ValueId original, Graph& target, ValueId copy) {
  copy_placement(source, original, target, copy);
  target[copy].name = source[original].name;
  target.storage(target[copy].storage).name = source.storage(source[original].storage).name;
}

}  // namespace

std::vector<ValueId> mapped(const std::vector<ValueId>& ids, const std::vector<ValueId>& map) {
  std::vector<ValueId> copies;
  copies.reserve(ids.size());
  for (ValueId id : ids) copies.push_back(id ? map[id.index] : ValueId{});
  return copies;
}

ValueId copy_declared(const Graph& source, ValueId id, Builder& builder) {
  const Value& value = source[id];
  const Storage& storage = source.storage(value.storage);
  const ValueId copy =
      builder.declare(value.name, value.type, value.shape, storage.cls, storage.space);
  take_after(source, id, builder.graph(), copy);
  Value& made = builder.graph()[copy];
  made.size_names = value.size_names;
  made.first = value.first;
  made.frozen = value.frozen;
  return copy;
}

void copy_op(const Graph& source, OpId id, int lane, std::vector<ValueId>& map, Builder& builder,
             const Replace& replace) {
  copy_op(source, id, lane, source[id].attributes, map, builder, replace);
}

void copy_op(const Graph& source, OpId id, int lane, const Attributes& attributes,
             std::vector<ValueId>& map, Builder& builder, const Replace& replace) {
  const Op& op = source[id];
  const std::vector<ValueId> operands = mapped(op.operands, map);
  const OpContext context{.phase = op.phase, .lane = lane, .where = op.where};
  Graph& target = builder.graph();
  std::vector<RegionId> regions;
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    const Region& region = source[op.regions[r]];
    builder.context = context;
    regions.push_back(builder.begin_region(op.name(), operands, attributes, r));
    for (std::size_t i = 0; i < region.parameters.size(); ++i) {
      const ValueId copy = target[regions[r]].parameters[i];
      take_after(source, region.parameters[i], target, copy);
      map[region.parameters[i].index] = copy;
    }
    for (OpId inner : region.ops) {
      if (replace && replace(inner, map, builder)) continue;
      copy_op(source, inner, lane == op.lane ? source[inner].lane : lane, map, builder, replace);
    }
    builder.end_region(mapped(region.results, map));
  }
  builder.context = context;
  const auto results = builder.add(op.definition, operands, attributes, std::move(regions));
  for (std::size_t i = 0; i < results.size(); ++i) {
    map[op.results[i].index] = results[i];
    if (lies_in_operand(source, op, op.results[i])) {
      target[results[i]].name = source[op.results[i]].name;
    } else {
      take_after(source, op.results[i], target, results[i]);
    }
  }
}

void copy_ends(const Graph& source, const std::vector<ValueId>& map, Graph& target) {
  target.outputs = mapped(source.outputs, map);
  if (source.training) {
    target.training = source.training;
    target.training->loss = map[source.training->loss.index];
    target.training->parameters = mapped(source.training->parameters, map);
  }
  for (Entry entry : source.entries) {
    entry.outputs = mapped(entry.outputs, map);
    entry.keeps = mapped(entry.keeps, map);
    target.entries.push_back(std::move(entry));
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
  for (const ValueId id : declared_values(source))
    map[id.index] = copy_declared(source, id, builder);
  for (OpId id : order) {
    if (!replace(id, map, builder)) copy_op(source, id, source[id].lane, map, builder, replace);
  }
  copy_ends(source, map, target);
  verify_pass(target);
  return target;
}

}  // namespace arenite::graph
