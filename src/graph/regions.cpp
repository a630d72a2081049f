#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>

#include "src/graph/nesting.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

constexpr std::size_t loop_first = 2;  // operands before a loop's first values

bool is_integer(DType type) {
  return type == DType::int64 || type == DType::int32 || type == DType::uint8;
}

void check_condition(const Value& value, const std::string& what) {
  if (is_integer(value.type) && value.shape.elements() == 1) return;
  fail({.found = what + " of " + type_text(value),
        .expected = "one integer (int64, int32 or uint8): 0 is false"});
}

std::vector<ResultType> infer_if(const OpView& op) {
  check_condition(op.operand(0), "a condition");
  const Graph& graph = op.graph();
  const auto& yes = graph[op.op().regions.at(0)].results;
  const auto& no = graph[op.op().regions.at(1)].results;
  if (yes.size() != no.size()) {
    fail({.found = "blocks that yield " + std::to_string(yes.size()) + " and " +
                   std::to_string(no.size()) + " values",
          .expected = "as many from both",
          .hint = "a block leaves a result out with '_'"});
  }
  std::vector<ResultType> types;
  for (std::size_t i = 0; i < yes.size(); ++i) {
    if (!yes[i] && !no[i]) {
      fail({.found = "result " + std::to_string(i + 1) + ", which both blocks leave out",
            .expected = "at least one that yields it"});
    }
    const Value& value = graph[yes[i] ? yes[i] : no[i]];
    if (no[i] && (graph[no[i]].type != value.type || graph[no[i]].shape != value.shape)) {
      fail({.found = "result " + std::to_string(i + 1) + " as " + type_text(value) + " and as " +
                     type_text(graph[no[i]]),
            .expected = "one type and shape from both blocks"});
    }
    types.push_back({value.type, value.shape});
  }
  return types;
}

void check_loop(const OpView& op) {
  const std::int64_t most = op.integer("max_trips");
  if (most < 1 || most > max_loop_trips) {
    fail({.found = "max_trips=" + std::to_string(most),
          .expected = "1 to " + std::to_string(max_loop_trips)});
  }
  if (op.has_operand(0) &&
      (op.operand(0).type != DType::int64 || op.operand(0).shape.elements() != 1)) {
    fail({.found = "trips of " + type_text(op.operand(0)), .expected = "one int64"});
  }
  if (op.has_operand(1)) check_condition(op.operand(1), "a condition");
}

std::vector<ResultType> carried_types(const OpView& op) {
  std::vector<ResultType> types;
  for (std::size_t i = loop_first; i < op.operand_count(); ++i)
    types.push_back({op.operand(i).type, op.operand(i).shape});
  return types;
}

std::vector<ResultType> loop_parameters(const OpView& op, std::size_t) {
  check_loop(op);
  std::vector<ResultType> types = carried_types(op);
  types.insert(types.begin(), {DType::int64, Shape{1}});
  return types;
}

std::vector<ResultType> infer_loop(const OpView& op) {
  check_loop(op);
  const Graph& graph = op.graph();
  const auto& yielded = graph[op.op().regions.at(0)].results;
  const std::size_t conditions = op.has_operand(1) ? 1 : 0;
  const std::vector<ResultType> carried = carried_types(op);
  const std::string expected =
      std::to_string(carried.size() + conditions) + " (" +
      (conditions > 0 ? "the next condition, then the carried values)" : "the carried values)");
  if (yielded.size() != carried.size() + conditions ||
      std::any_of(yielded.begin(), yielded.end(), [](ValueId id) { return !id; })) {
    fail({.found = "a block that yields " + std::to_string(yielded.size()) + " values" +
                   (yielded.size() == carried.size() + conditions ? ", some left out" : ""),
          .expected = expected});
  }
  if (conditions > 0) check_condition(graph[yielded[0]], "a next condition");
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const Value& next = graph[yielded[i + conditions]];
    if (next.type == carried[i].type && next.shape == carried[i].shape) continue;
    fail({.found = "carried value " + std::to_string(i + 1) + " yielded as " + type_text(next),
          .expected = type_text(carried[i]) + ", as it begins"});
  }
  return carried;
}

Cost cost_of(const OpView& op) {
  if (op.op().definition->cost) return op.op().definition->cost(op);
  Cost cost;
  for (const auto& list : {op.op().operands, op.op().results}) {
    for (ValueId id : list) {
      if (id)
        cost.bytes += static_cast<double>(byte_size(op.graph()[id].type, op.graph()[id].shape));
    }
  }
  return cost;
}

Cost cost_of(const Graph& graph, RegionId region) {
  Cost sum;
  for (OpId id : graph[region].ops) {
    const Cost cost = cost_of({graph, graph[id]});
    sum.flops += cost.flops;
    sum.bytes += cost.bytes;
  }
  return sum;
}

Cost if_cost(const OpView& op) {
  const Cost yes = cost_of(op.graph(), op.op().regions.at(0));
  const Cost no = cost_of(op.graph(), op.op().regions.at(1));
  return {.flops = std::max(yes.flops, no.flops), .bytes = std::max(yes.bytes, no.bytes)};
}

Cost loop_cost(const OpView& op) {
  const Cost trip = cost_of(op.graph(), op.op().regions.at(0));
  const auto trips = static_cast<double>(op.integer("max_trips"));
  return {.flops = trip.flops * trips, .bytes = trip.bytes * trips};
}

struct Bytes {
  StorageId root;
  std::int64_t begin = 0, end = 0;

  bool overlaps(const Bytes& other) const {
    return root == other.root && begin < other.end && other.begin < end;
  }
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

Bytes bytes_of(const Graph& graph, ValueId id) {
  const auto [begin, end] = byte_range(graph, id);
  return {graph.root(id), begin, end};
}

void add_handover(const Graph& graph, ValueId from, ValueId into, std::vector<Handover>& list) {
  if (from && bytes_of(graph, from) != bytes_of(graph, into)) list.push_back({from, into});
}

void mark_staged(const Graph& graph, std::vector<Handover>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Bytes source = bytes_of(graph, list[i].from);
    for (std::size_t j = 0; j < list.size() && !list[i].staged; ++j)
      list[i].staged = j != i && bytes_of(graph, list[j].into).overlaps(source);
  }
}

bool is_loop(const Op& op) { return op.definition->control == Control::loop; }

}  // namespace

void add_region_operators(OperatorTable& table) {
  table.add({.name = "if",
             .operands = {{"condition"}},
             .regions = {"then", "else"},
             .control = Control::branch,
             .infer = infer_if,
             .cost = if_cost});
  table.add({.name = "loop",
             .operands = {{.name = "trips", .optional = true},
                          {.name = "condition", .optional = true},
                          {"first"}},
             .variadic = 1,
             .attributes = {{"max_trips", AttributeType::integer, {}}},
             .regions = {"body"},
             .control = Control::loop,
             .parameters = loop_parameters,
             .parameter_names = {"trip", "carried"},
             .infer = infer_loop,
             .cost = loop_cost});
}

std::vector<Handover> handovers_at_end(const Graph& graph, const Op& op, std::size_t region) {
  std::vector<Handover> list;
  const Region& ended = graph[op.regions.at(region)];
  if (op.definition->control == Control::branch) {
    for (std::size_t i = 0; i < op.results.size(); ++i)
      add_handover(graph, ended.results[i], op.results[i], list);
  } else if (is_loop(op)) {
    const std::size_t conditions = ended.results.size() - op.results.size();
    for (std::size_t i = 0; i < op.results.size(); ++i)
      add_handover(graph, ended.results[i + conditions], ended.parameters[i + 1], list);
  }
  mark_staged(graph, list);
  return list;
}

std::vector<Handover> handovers_at_entry(const Graph& graph, const Op& op) {
  std::vector<Handover> list;
  if (!is_loop(op)) return list;
  const auto& parameters = graph[op.regions.at(0)].parameters;
  for (std::size_t i = 0; i < op.results.size(); ++i)
    add_handover(graph, op.operands[i + loop_first], parameters[i + 1], list);
  return list;
}

std::vector<Handover> handovers_at_exit(const Graph& graph, const Op& op) {
  std::vector<Handover> list;
  if (!is_loop(op)) return list;
  const auto& parameters = graph[op.regions.at(0)].parameters;
  for (std::size_t i = 0; i < op.results.size(); ++i)
    add_handover(graph, parameters[i + 1], op.results[i], list);
  return list;
}

std::int64_t staging_bytes(const Graph& graph, const Op& op) {
  std::int64_t most = 0;
  for (std::size_t region = 0; region < op.regions.size(); ++region) {
    std::int64_t sum = 0;
    for (const Handover& handover : handovers_at_end(graph, op, region)) {
      const Bytes source = bytes_of(graph, handover.from);
      if (handover.staged) sum += round_up(source.end - source.begin, default_alignment);
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<OpId> nested_ops(const Graph& graph) {
  std::vector<OpId> all;
  add_nested_ops(graph, Graph::body, all);
  return all;
}

bool is_partial(const Graph& graph, ValueId value) {
  const OpId producer = graph[value].producer;
  if (!producer || graph[producer].definition->control != Control::branch) return false;
  const Op& op = graph[producer];
  const std::size_t i = result_index(op, value);
  if (i == op.results.size()) return false;
  return !graph[op.regions[0]].results.at(i) || !graph[op.regions[1]].results.at(i);
}

std::size_t side_of(const Graph& graph, ValueId partial) {
  const Op& op = graph[graph[partial].producer];
  return graph[op.regions[0]].results.at(result_index(op, partial)) ? 0 : 1;
}

}  // namespace arenite::graph
