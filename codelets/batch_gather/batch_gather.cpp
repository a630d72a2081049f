// batch_gather(images uint8 [M, H, W, C], labels uint8 [M], order int32 [P], cursor int64 [1]) -> x
// float32 [count, H, W, C], y int32 [count]: sample j is image order[cursor + begin + j], times
// `scale`, and its label. It is two draws.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

enum Operand : std::size_t { images, labels, order, cursor };

Results infer(const OpView& op) {
  expect_type(op, images, DType::uint8);
  expect_rank(op, images, 4, "[M, H, W, C]");
  const Shape& shape = op.operand(images).shape;
  expect_value(op, labels, DType::uint8, {shape[0]},
               "one label for each of the images " + to_string(shape));
  const std::int64_t count = op.integer("count");
  if (count < 1)
    fail({.found = "count=" + std::to_string(count), .expected = "at least one sample"});
  return {{DType::float32, shape.with(0, count)}, {DType::int32, {count}}};
}

std::vector<ValueId> in_mode(graph::ModeContext& context) {
  const graph::Attributes& given = context.op.attributes;
  const auto drawn = [&](Operand data, const char* type, double scale) {
    const auto& from = context.operands;
    return context.builder.add1("draw", {from[data], from[order], from[cursor]},
                                {{"count", given.integer("count")},
                                 {"begin", given.integer("begin")},
                                 {"type", std::string(type)},
                                 {"scale", scale}});
  };
  const ValueId x = drawn(images, "float32", given.real("scale"));
  return {x, drawn(labels, "int32", 1)};
}

}  // namespace

void register_batch_gather(Registry& registry) {
  registry.add({.name = "batch_gather",
                .operands = {{"images"}, {"labels"}, {"order"}, {"cursor"}},
                .results = {"x", "y"},
                .attributes = {{"count", graph::AttributeType::integer, {}},
                               {"begin", graph::AttributeType::integer, std::int64_t{0}},
                               {"scale", graph::AttributeType::real, 1.0 / 255}},
                .infer = infer,
                .in_mode = in_mode},
               {});
}

}  // namespace arenite::codelets
