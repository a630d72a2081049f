#include "src/graph/passes/averages.hpp"

#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>

#include <unordered_map>

namespace arenite::graph {

void check_averaging(const Averaging& averaging) {
  if (!(averaging.decay >= 0 && averaging.decay < 1)) {
    fail({.found = "averages with decay=" + to_string(AttributeValue(averaging.decay)),
          .expected = "a number from 0 to below 1"});
  }
  if (averaging.begin < 1 || averaging.every < 1) {
    fail({.found = "averages from step " + std::to_string(averaging.begin) + " on, every " +
                   std::to_string(averaging.every),
          .expected = "numbers of at least 1"});
  }
}

std::string average_name(const std::string& parameter) { return parameter + ".average"; }

expr::Expression share_kept(const Averaging& averaging) {
  expr::Builder b;
  const auto step = b.cast(expr::Type::float64, b.operand(expr::Type::int64));
  const auto begin = static_cast<double>(averaging.begin),
             every = static_cast<double>(averaging.every);
  const auto before = floor((step - begin) / every);  // means of so many steps are in it
  const auto decay = b.constant(expr::Type::float64, averaging.decay);
  const auto share = averaging.decay > 0 ? select(before == 0, 0.0, decay) : before / (before + 1);
  const auto later = select(step - begin == before * every, share, 1.0);
  // Before the first one it is the parameter.
  return b.finish({b.cast(expr::Type::float32, select(before < 0, 0.0, later))});
}

void use_averages(Graph& graph, const OperatorTable& table) {
  if (!graph.training || !graph.training->averaging) {
    fail({.found = "means of parameters asked for, where training makes none",
          .expected = "a training that averages"});
  }
  Builder builder(graph, table);
  std::unordered_map<ValueId, ValueId> means;
  for (const ValueId id : graph.training->parameters) {
    const Value parameter = graph[id];
    means[id] = builder.declare(average_name(parameter.name), parameter.type, parameter.shape,
                                StorageClass::optimizer_state);
  }
  const auto replace = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (const auto mean = means.find(id); mean != means.end()) id = mean->second;
    }
  };
  for (std::size_t i = 0; i < graph.op_count(); ++i) replace(graph[OpId(i)].operands);
  for (std::size_t i = 0; i < graph.region_count(); ++i) replace(graph[RegionId(i)].results);
  replace(graph.outputs);
}

}  // namespace arenite::graph
