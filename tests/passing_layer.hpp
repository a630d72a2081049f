// A layer from outside the library that misbehaves as a test wants it to.
#pragma once

#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codelets/share.hpp"

namespace arenite::testing {

/// Passes its input on, and calls `besides` whenever it does: once a lane and step, on the worker
/// that runs it. The gradient goes straight through. `name` is the operator's, one a `besides`.
template <void (*besides)()>
nn::Layer passing_layer(const std::string& name) {
  const auto copy = [](const runtime::KernelCall& call) {
    besides();
    std::copy_n(call.in<float>(0), *static_cast<const std::int64_t*>(call.state),
                call.out<float>(0));
  };
  if (!operators().find(name)) {
    register_operator(
        {.name = name,
         .operands = {{"x"}},
         .results = {"y"},
         .infer =
             [](const graph::OpView& op) {
               return std::vector<graph::ResultType>{{op.operand(0).type, op.operand(0).shape}};
             },
         .gradient =
             [](graph::GradientContext& context) {
               if (context.wants(0)) context.set(0, context.result_gradient(0));
             },
         .of_share = codelets::rows_of_first<>},
        {{.name = "plain", .prepare = [copy](const graph::OpView& op) {
            return runtime::PreparedKernel{
                copy, std::make_shared<std::int64_t>(op.operand(0).shape.elements())};
          }}});
  }
  return [name](nn::ModelBuilder& model, graph::ValueId x) {
    model.begin(name);
    return model.graph().add1(name, {x});
  };
}

}  // namespace arenite::testing
