// A loop goes backward as a loop of as many trips, from the last to the first. It carries the
// gradients of what the forward loop carries, and a sum for each value from outside that a trip
// sends a gradient to.
//
// What a backward trip reads of its forward trip lies on a stack: one more value that the forward
// loop carries, with a row for each of its max_trips, of which a trip replaces its own.
#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <set>

#include "src/base/element.hpp"
#include "src/graph/passes/backward.hpp"
#include "src/graph/values.hpp"

namespace arenite::graph {
namespace {

/// One more value that a loop carries, before the loop's op is there.
ValueId add_parameter(Graph& graph, RegionId region, const std::string& name, ValueId first) {
  const Value& like = graph[first];
  const Storage& storage = graph.root_storage(first);
  const ValueId parameter = add_with_storage(
      graph, {.name = name, .type = like.type, .shape = like.shape, .parameter_of = region},
      storage.cls, storage.space);
  graph[region].parameters.push_back(parameter);
  return parameter;
}

}  // namespace

void Backward::differentiate_loop(OpId id) {
  const Op op = graph()[id];
  const RegionId body = op.regions[0];
  const std::vector<ValueId> carried(graph()[body].parameters.begin() + 1,
                                     graph()[body].parameters.end());
  const std::vector<ValueId> yielded(
      graph()[body].results.end() - static_cast<std::ptrdiff_t>(carried.size()),
      graph()[body].results.end());
  const std::vector<std::size_t> moving = carried_gradients(op, carried, yielded);
  if (moving.empty()) return;
  std::vector<ValueId> captured;
  for (ValueId source : captures(id)) {
    if (wanted(source) && is_real(graph()[source].type)) captured.push_back(source);
  }

  const OpContext context = builder_.context;
  std::vector<ValueId> operands{count_trips(id), ValueId{}};
  for (std::size_t i : moving) {
    const ValueId given = total(op.results[i]);
    const bool loss = is_loss(op.results[i]);
    if (loss && given) refuse_read_loss(id);
    operands.push_back(given ? given : add_full(into_, op.results[i], loss ? 1 : 0));
  }
  const Attributes attributes{{"max_trips", op.attributes.integer("max_trips")}};
  const RegionId region = builder_.begin_region(op.name(), operands, attributes);
  const std::vector<ValueId> parameters = graph()[region].parameters;
  // The forward trip that this one undoes.
  const ValueId trip = builder_.add1("index_sum", {operands[0], parameters[0]},
                                     {{"scale", std::int64_t{-1}}, {"offset", std::int64_t{-1}}});
  Backward backward(builder_, body, region, wanted_);
  for (std::size_t m = 0; m < moving.size(); ++m) {
    const ValueId next = yielded[moving[m]];
    if (wanted(next)) backward.add_part(next, parameters[m + 1]);
  }
  backward.run();
  std::vector<ValueId> results, reached;
  for (std::size_t i : moving) results.push_back(backward.total(carried[i]));
  std::vector<ValueId> sums;
  for (ValueId source : captured) {
    const ValueId gradient = backward.total(source);
    if (!gradient) continue;
    reached.push_back(source);
    sums.push_back(gradient);
  }
  builder_.end_region({});
  builder_.context = context;
  for (std::size_t m = 0; m < moving.size(); ++m) {
    if (!results[m]) results[m] = add_full(region, carried[moving[m]], 0);
  }
  for (std::size_t s = 0; s < reached.size(); ++s) {
    operands.push_back(add_full(into_, reached[s], 0));
    const ValueId sum = add_parameter(builder_.graph(), region,
                                      graph()[reached[s]].name + ".gradient", operands.back());
    results.push_back(add_into(region, graph()[region].ops.size(), "sum", {sum, sums[s]}, {}));
  }
  builder_.graph()[region].results = results;
  restore(region, body, [&](ValueId value, std::size_t& position) {
    if (value == graph()[body].parameters[0]) return trip;
    if (is_partial(graph(), value)) make_whole(value);
    const ValueId rows = stack(id, value);
    const ValueId row =
        add_into(region, position++, "dynamic_slice", {rows, trip}, {{"rows", std::int64_t{1}}});
    const auto dims = graph()[value].shape.dims();
    return add_into(region, position++, "reshape", {row},
                    {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}});
  });

  const std::vector<ValueId> gradients = builder_.add(op.name(), operands, attributes, {region});
  for (std::size_t m = 0; m < moving.size(); ++m) {
    const ValueId first = op.operands[moving[m] + 2];
    if (wanted(first)) add_part(first, gradients[m]);
  }
  for (std::size_t s = 0; s < reached.size(); ++s)
    add_part(reached[s], gradients[moving.size() + s]);
}

/// The carried values that have gradients: those whose results have some, or are losses, and what
/// a trip's gradients of these reach.
std::vector<std::size_t> Backward::carried_gradients(const Op& loop,
                                                     const std::vector<ValueId>& carried,
                                                     const std::vector<ValueId>& yielded) const {
  std::set<ValueId> reached;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    if (is_loss(loop.results[i]) || parts_.contains(loop.results[i])) reached.insert(carried[i]);
  }
  std::vector<std::size_t> moving;
  for (std::size_t known = reached.size() + 1; known != reached.size();) {
    known = reached.size();
    moving.clear();
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (!reached.contains(carried[i]) || !wanted(carried[i]) ||
          !is_real(graph()[carried[i]].type))
        continue;
      moving.push_back(i);
      reached.insert(yielded[i]);
    }
    const auto& ops = graph()[loop.regions[0]].ops;
    for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
      if (!leads(*id, reached)) continue;
      for (ValueId source : sources(*id)) {
        if (wanted(source)) reached.insert(source);
      }
    }
  }
  return moving;
}

/// The loop's op is there already.
Backward::Carried Backward::add_carried(OpId loop, const std::string& name, ValueId first) {
  Graph& graph = builder_.graph();
  const RegionId body = graph[loop].regions[0];
  const ValueId parameter = add_parameter(graph, body, name, first);
  const Value& like = graph[parameter];
  const Storage& storage = graph.storage(like.storage);
  const ValueId result = add_with_storage(
      graph, {.name = name, .type = like.type, .shape = like.shape, .producer = loop}, storage.cls,
      storage.space);
  graph[loop].operands.push_back(first);
  graph[loop].results.push_back(result);
  return {parameter, result};
}

/// How many trips the loop has made.
ValueId Backward::count_trips(OpId loop) {
  const OpContext context = builder_.context;
  builder_.context = context_of(loop);
  const RegionId body = graph()[loop].regions[0];
  const ValueId none = add_into(
      forward_, position_of(forward_, loop), "full", {},
      {{"shape", std::vector<std::int64_t>{1}}, {"type", std::string(to_string(DType::int64))}});
  const Carried count = add_carried(loop, "trips", none);
  const ValueId next = add_into(body, graph()[body].ops.size(), "index_sum",
                                {count.parameter, ValueId{}}, {{"offset", std::int64_t{1}}});
  builder_.graph()[body].results.push_back(next);
  builder_.context = context;
  return count.result;
}

/// What a value of the body was in each trip, [max_trips, elements].
ValueId Backward::stack(OpId loop, ValueId value) {
  const OpContext context = builder_.context;
  builder_.context = context_of(loop);
  const RegionId body = graph()[loop].regions[0];
  const std::int64_t rows = graph()[loop].attributes.integer("max_trips");
  const Value saved = graph()[value];
  constexpr std::int64_t most = std::int64_t{1} << 48;
  if (saved.shape.elements() > most / rows) {
    fail({.found = "'" + saved.name + "' of shape " + to_string(saved.shape) +
                   ", saved in each of " + std::to_string(rows) + " trips",
          .expected = "at most 2^48 elements in all",
          .where = describe(graph(), loop),
          .hint = "give the loop a smaller max_trips"});
  }
  const ValueId empty =
      add_into(forward_, position_of(forward_, loop), "full", {},
               {{"shape", std::vector<std::int64_t>{rows, saved.shape.elements()}},
                {"type", std::string(to_string(saved.type))}});
  const Carried stack = add_carried(loop, saved.name + ".saved", empty);
  std::size_t position = saved.producer ? position_of(body, saved.producer) + 1 : 0;
  const ValueId row = add_into(body, position++, "reshape", {value},
                               {{"shape", std::vector<std::int64_t>{1, saved.shape.elements()}}});
  const ValueId next = add_into(body, position, "replace_slice",
                                {stack.parameter, row, graph()[body].parameters[0]}, {});
  builder_.graph()[body].results.push_back(next);
  builder_.context = context;
  return stack.result;
}

}  // namespace arenite::graph
