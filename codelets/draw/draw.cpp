// draw(data [M, …], order int32 [P], cursor int64 [1]) -> y [count, …]: sample j is row
// order[cursor + begin + j], as numbers of `type`, real ones times `scale`.
//
// The data set, the shuffled order and the cursor are data: moving on to the next batch is writing
// one integer. Each lane takes `count` samples from its own `begin` on. What the order and the
// cursor hold is known only at run time: see DrawFault.
#include "codelets/draw/draw.hpp"

#include "codelets/rules.hpp"
#include "src/base/element.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

DType drawn_type(const OpView& op) {
  const DType from = op.operand(0).type, to = parse_dtype(op.attributes().text("type"));
  if (!is_real(to) && is_real(from)) {
    fail({.found = operand_text(op, 0) + " of type " + std::string(to_string(from)) + " drawn as " +
                   std::string(to_string(to)),
          .expected = "float32 or float64, or a data set of integers"});
  }
  const double scale = op.real("scale");
  if (!std::isfinite(scale) || (scale != 1 && !is_real(to))) {
    fail({.found = "scale=" + graph::to_string(scale),
          .expected = is_real(to) ? "a finite number" : "1, of samples of integers"});
  }
  return to;
}

Results infer(const OpView& op) {
  expect_axes(op, 0, "[M, …]");
  expect_type(op, 1, DType::int32);
  expect_rank(op, 1, 1, "[P]");
  expect_value(op, 2, DType::int64, {1}, "one position in the order");
  const std::int64_t order = op.operand(1).shape[0], count = op.integer("count"),
                     begin = op.integer("begin");
  if (count < 1)
    fail({.found = "count=" + std::to_string(count), .expected = "at least one sample"});
  if (begin < 0)
    fail({.found = "begin=" + std::to_string(begin), .expected = "a position of at least 0"});
  if (begin > order || count > order - begin) {
    fail({.found = "begin=" + std::to_string(begin) + " and count=" + std::to_string(count) +
                   " in an order of " + std::to_string(order) + " entries",
          .expected = "a batch no longer than the order"});
  }
  return {{drawn_type(op), op.operand(0).shape.with(0, count)}};
}

/// From further on in the order; or by their own entries of it, where that is what is cut.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.is_whole(0) || !share.is_whole(2)) return std::nullopt;
  graph::Attributes attributes = op.attributes();
  attributes.set("count", share.count);
  if (share.is_whole(1)) {
    attributes.set("begin", op.integer("begin") + share.begin);
  } else if (op.integer("begin") != 0 || op.integer("count") != op.operand(1).shape[0]) {
    return std::nullopt;
  }
  return all_rows(op, std::move(attributes));
}

graph::Cost cost(const OpView& op) {
  const auto elements = static_cast<double>(op.result(0).shape.elements());
  const std::int64_t bytes = size_of(op.operand(0).type) + size_of(op.result(0).type);
  return {.flops = elements,
          .bytes = elements * static_cast<double>(bytes) +
                   static_cast<double>(op.integer("count") * size_of(DType::int32))};
}

}  // namespace

void register_draw(Registry& registry) {
  registry.add({.name = "draw",
                .operands = {{"data"}, {"order"}, {"cursor"}},
                .results = {"y"},
                .attributes = {{"count", graph::AttributeType::integer, {}},
                               {"begin", graph::AttributeType::integer, std::int64_t{0}},
                               {"type", graph::AttributeType::text, std::string("float32")},
                               {"scale", graph::AttributeType::real, 1.0}},
                .infer = infer,
                .cost = cost,
                .of_share = of_share,
                .fault = faults({{static_cast<std::uint32_t>(DrawFault::cursor),
                                  "a cursor that reaches beyond the order of samples"},
                                 {static_cast<std::uint32_t>(DrawFault::index),
                                  "an order that names a sample outside the data set"},
                                 {static_cast<std::uint32_t>(DrawFault::value),
                                  "an integer beyond those of the type that it is drawn as"}})},
               draw_kernels());
}

}  // namespace arenite::codelets
