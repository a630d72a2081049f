// full(shape, value=0, type="float32") -> y: a tensor of one number, zeros unless said otherwise.
// What a block yields as the gradient of a value that it does not depend on, and where sums begin.
#include <arenite/expr/builder.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

#include <cmath>

namespace arenite::codelets {

namespace {

Results infer(const OpView& op) {
  const DType type = parse_dtype(op.attributes().text("type"));
  const double value = op.real("value");
  const bool real = is_real(type);
  // Integers are exact as doubles; beyond these limits not all are.
  constexpr double limit = 9007199254740992;  // 2^53
  const double least = type == DType::uint8   ? 0
                       : type == DType::int32 ? std::numeric_limits<std::int32_t>::min()
                                              : -limit;
  const double most = type == DType::uint8   ? 255
                      : type == DType::int32 ? std::numeric_limits<std::int32_t>::max()
                                             : limit;
  if (!real && !(value == std::floor(value) && value >= least && value <= most)) {
    fail({.found = "value=" + graph::to_string(*op.attributes().find("value")) + " of type " +
                   std::string(to_string(type)),
          .expected = "an integer from " + std::to_string(static_cast<std::int64_t>(least)) +
                      " to " + std::to_string(static_cast<std::int64_t>(most))});
  }
  return {{type, Shape(op.attributes().integers("shape"))}};
}

graph::ElementFormula formula_of(const OpView& op) {
  expr::Builder formula;
  return {formula.finish({formula.cast(type_of(op.result(0).type), op.real("value"))})};
}

}  // namespace

void register_full(Registry& registry) {
  registry.add({.name = "full",
                .results = {"y"},
                .attributes = {{"shape", graph::AttributeType::integers, {}},
                               {"value", graph::AttributeType::real, 0.0},
                               {"type", graph::AttributeType::text, std::string("float32")}},
                .infer = infer,
                .formula = formula_of,
                .of_share = [](const OpView& op,
                               const graph::Share& share) -> std::optional<graph::OfShare> {
                  if (op.result(0).shape.rank() == 0) return std::nullopt;
                  return all_rows(op, with_rows(op, "shape", share));
                }},
               {});
}

}  // namespace arenite::codelets
