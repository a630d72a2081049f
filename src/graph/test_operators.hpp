// Operators for the tests of this folder: small stand-ins for every kind of definition there is.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/rules.hpp>

#include "src/base/testing.hpp"

#include <string>

namespace arenite::graph::testing {

using arenite::testing::error_of;

inline std::vector<ResultType> nothing(const OpView&) { return {}; }

inline std::vector<ResultType> block_types(const OpView& op) {
  return op.has_operand(0) ? like_first(op) : std::vector<ResultType>{};
}

inline ResultType pooled(const OpView& op) {
  const Shape& x = op.operand(0).shape;
  const auto& kernel = op.attributes().integers("kernel");
  if (x.rank() != 4 || kernel.size() != 2 || kernel[0] < 1 || kernel[1] < 1) {
    fail({.found = "a kernel " + to_string(AttributeValue(kernel)) + " on shape " + to_string(x),
          .expected = "two sizes of at least 1, on rank 4"});
  }
  return {op.operand(0).type, Shape{x[0], x[1] / kernel[0], x[2] / kernel[1], x[3]}};
}

/// relu, add, reshape, slice, pool, scale, concat, sgd, accumulate, fill, block, "odd name", and
/// those of regions.hpp.
inline const OperatorTable& table() {
  static const OperatorTable all = [] {
    OperatorTable t;
    t.add({.name = "relu",
           .operands = {{"x"}},
           .results = {"y"},
           .infer = like_first,
           .in_place = {{0, 0}}});
    t.add({.name = "add",
           .operands = {{"a"}, {"b"}},
           .results = {"y"},
           .infer =
               [](const OpView& op) {
                 if (op.operand(0).shape != op.operand(1).shape) {
                   fail({.found = to_string(op.operand(0).shape) + " and " +
                                  to_string(op.operand(1).shape),
                         .expected = "equal shapes"});
                 }
                 return like_first(op);
               },
           .in_place = {{0, 0}}});
    t.add({.name = "reshape",
           .operands = {{"x"}},
           .results = {"y"},
           .attributes = {{"shape", AttributeType::integers, {}}},
           .infer =
               [](const OpView& op) {
                 const Shape shape(op.attributes().integers("shape"));
                 if (shape.elements() != op.operand(0).shape.elements()) {
                   fail({.found =
                             "shape " + to_string(shape) + " for " + to_string(op.operand(0).shape),
                         .expected = "as many elements"});
                 }
                 return std::vector<ResultType>{{op.operand(0).type, shape}};
               },
           .views = [](const OpView&) { return std::vector<std::optional<ViewOf>>{ViewOf{}}; }});
    t.add(
        {.name = "slice",
         .operands = {{"x"}},
         .results = {"y"},
         .attributes = {{"begin", AttributeType::integer, {}}, {"end", AttributeType::integer, {}}},
         .infer =
             [](const OpView& op) {
               const Shape& x = op.operand(0).shape;
               const std::int64_t begin = op.integer("begin"), end = op.integer("end");
               if (x.rank() < 1 || begin < 0 || end < begin || end > x[0]) {
                 fail({.found = "rows " + std::to_string(begin) + " to " + std::to_string(end) +
                                " of " + to_string(x),
                       .expected = "rows of the first axis"});
               }
               return std::vector<ResultType>{{op.operand(0).type, x.with(0, end - begin)}};
             },
         .views =
             [](const OpView& op) {
               const Value& x = op.operand(0);
               const std::int64_t row =
                   byte_size(x.type, x.shape, x.layout) / std::max<std::int64_t>(x.shape[0], 1);
               return std::vector<std::optional<ViewOf>>{ViewOf{0, row * op.integer("begin")}};
             }});
    t.add({.name = "pool",
           .operands = {{"x"}},
           .results = {"y", "codes"},
           .attributes = {{"kernel", AttributeType::integers, std::vector<std::int64_t>{2, 2}},
                          {"mode", AttributeType::text, std::string("max")}},
           .infer = [](const OpView& op) {
             return std::vector<ResultType>{pooled(op), {DType::uint8, pooled(op).shape}};
           }});
    t.add({.name = "scale",
           .operands = {{"x"},
                        {.name = "factor", .optional = true},
                        {.name = "shift", .optional = true}},
           .results = {"y"},
           .attributes = {{"by", AttributeType::real, 1.0}},
           .infer = like_first});
    t.add({.name = "concat",
           .operands = {{"part"}},
           .variadic = 1,
           .results = {"y"},
           .infer = [](const OpView& op) {
             std::int64_t rows = 0;
             for (std::size_t i = 0; i < op.operand_count(); ++i)
               rows += op.operand(i).shape.elements();
             return std::vector<ResultType>{{op.operand(0).type, Shape{rows}}};
           }});
    t.add({.name = "sgd",
           .operands = {{.name = "weight", .renews = Renews::state},
                        {"gradient"},
                        {.name = "momentum", .optional = true, .renews = Renews::state}},
           .results = {"weight", "momentum"},
           .attributes = {{"lr", AttributeType::real, {}}},
           .infer = [](const OpView& op) {
             std::vector<ResultType> made = like_first(op);
             if (op.has_operand(2)) made.push_back({op.operand(2).type, op.operand(2).shape});
             return made;
           }});
    t.add({.name = "accumulate",
           .operands = {{.name = "into", .renews = Renews::state}, {"x"}},
           .results = {"sum"},
           .infer = like_first});
    t.add({.name = "fill",
           .operands = {{.name = "into", .renews = Renews::state}},
           .results = {"filled"},
           .infer = like_first});
    t.add({.name = "block",
           .operands = {{.name = "x", .optional = true}},
           .results = {"y"},
           .regions = {"body"},
           .parameters = [](const OpView& op, std::size_t) { return block_types(op); },
           .parameter_names = {"p"},
           .infer = block_types});
    t.add({.name = "odd name", .operands = {{"x"}}, .results = {"y"}, .infer = like_first});
    add_region_operators(t);
    return t;
  }();
  return all;
}

}  // namespace arenite::graph::testing
