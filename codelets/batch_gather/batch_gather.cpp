// batch_gather(images uint8 [M, H, W, C], labels uint8 [M], order int32 [P], cursor int64 [1]) -> x
// float32 [count, H, W, C], y int32 [count]: sample j is image order[cursor + begin + j], times
// `scale`.
//
// The dataset, the shuffled order and the cursor are data: moving on to the next batch is writing
// one integer. Each lane takes `count` samples from its own `begin` on. What the order and the
// cursor hold is known only at run time: see GatherFault.
#include "codelets/batch_gather/batch_gather.hpp"

#include "codelets/rules.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

Results infer(const OpView& op) {
  expect_type(op, 0, DType::uint8);
  expect_rank(op, 0, 4, "[M, H, W, C]");
  const Shape& images = op.operand(0).shape;
  expect_value(op, 1, DType::uint8, {images[0]},
               "one label for each of the images " + to_string(images));
  expect_type(op, 2, DType::int32);
  expect_rank(op, 2, 1, "[P]");
  expect_value(op, 3, DType::int64, {1}, "one position in the order");

  const std::int64_t order = op.operand(2).shape[0], count = op.integer("count"),
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
  const double scale = op.real("scale");
  if (!std::isfinite(scale))
    fail({.found = "scale=" + graph::to_string(scale), .expected = "a finite number"});
  return {{DType::float32, {count, images[1], images[2], images[3]}}, {DType::int32, {count}}};
}

/// From further on in the order; or by their own entries of it, where that is what is cut.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.is_whole(0) || !share.is_whole(1) || !share.is_whole(3)) return std::nullopt;
  graph::Attributes attributes = op.attributes();
  attributes.set("count", share.count);
  if (share.is_whole(2)) {
    attributes.set("begin", op.integer("begin") + share.begin);
  } else if (op.integer("begin") != 0 || op.integer("count") != op.operand(2).shape[0]) {
    return std::nullopt;
  }
  return all_rows(op, std::move(attributes));
}

graph::Cost cost(const OpView& op) {
  const auto n = static_cast<double>(op.result(0).shape.elements());
  return {
      .flops = n,
      .bytes = n * (1 + sizeof(float)) + static_cast<double>(op.result(1).shape.elements()) * 9};
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
                .cost = cost,
                .of_share = of_share,
                .fault = faults({{static_cast<std::uint32_t>(GatherFault::cursor),
                                  "a cursor that reaches beyond the order of samples"},
                                 {static_cast<std::uint32_t>(GatherFault::index),
                                  "an order that names a sample outside the data set"}})},
               batch_gather_kernels());
}

}  // namespace arenite::codelets
