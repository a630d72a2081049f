// accumulate(total, value) -> sum: total + value, element by element, as a new version of the
// total: the sum over the batches of an epoch, or over a batch's parts, lives in a buffer of its
// own. average(mean, value, kept) -> mean: kept · mean + (1 − kept) · value, likewise.
#include <arenite/expr/builder.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  for (const std::size_t operand : {0, 1}) {
    if (gradient && context.wants(operand)) context.set(operand, gradient);
  }
}

}  // namespace

void register_accumulate(Registry& registry) {
  registry.add({.name = "accumulate",
                .operands = {{.name = "total", .renews = graph::Renews::state}, {"value"}},
                .results = {"sum"},
                .infer = [](const OpView& op) -> Results {
                  const DType type = op.operand(0).type;
                  if (type != DType::float32 && type != DType::float64 && type != DType::int64) {
                    fail({.found = operand_text(op, 0) + " of type " + std::string(to_string(type)),
                          .expected = "float32, float64 or int64"});
                  }
                  expect_like(op, 1, 0);
                  return {{type, op.operand(0).shape}};
                },
                .gradient = gradient,
                .formula =
                    [](const OpView& op) {
                      expr::Builder formula;
                      const expr::Type type = type_of(op.operand(0).type);
                      const auto total = formula.operand(type), value = formula.operand(type);
                      return graph::ElementFormula{formula.finish({total + value})};
                    },
                .cost = map_cost},
               {});
  registry.add(
      {.name = "average",
       .operands = {{.name = "mean", .renews = graph::Renews::state}, {"value"}, {"kept"}},
       .results = {"mean"},
       .infer = [](const OpView& op) -> Results {
         expect_type(op, 0, DType::float32);
         expect_like(op, 1, 0);
         expect_value(op, 2, DType::float32, {1}, "the share of the mean that stays");
         return like_first(op);
       },
       .formula =
           [](const OpView&) {
             expr::Builder formula;
             constexpr expr::Type type = expr::Type::float32;
             const auto mean = formula.operand(type), value = formula.operand(type),
                        kept = formula.operand(type);
             return graph::ElementFormula{formula.finish({kept * mean + (1 - kept) * value})};
           },
       .cost = map_cost},
      {});
}

}  // namespace arenite::codelets
