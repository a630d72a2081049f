// A layer from outside the library that misbehaves as a test wants it to.
#pragma once

#include <arenite/graph/rules.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace arenite::testing {

/// Passes its input on, and calls `besides` whenever it does: once a lane and step, on the worker
/// that runs it. The gradient goes straight through. `name` is the operator's, one a `besides`.
template <void (*besides)()>
nn::Layer passing_layer(const std::string& name) {
  static constexpr auto copy = [](const runtime::KernelCall& call, const std::int64_t& count) {
    besides();
    std::copy_n(call.in<float>(0), count, call.out<float>(0));
  };
  if (!operators().find(name)) {
    register_operator(
        {.name = name,
         .operands = {{"x"}},
         .results = {"y"},
         .infer = graph::like_first,
         .gradient = graph::gradient_of_first(
             [](graph::GradientContext&, graph::ValueId gradient) { return gradient; }),
         .of_share = graph::rows_of_first<>},
        {{.name = "plain", .prepare = [](const graph::OpView& op) {
            return runtime::prepared<copy>(op.operand(0).shape.elements());
          }}});
  }
  return [name](nn::ModelBuilder& model, graph::ValueId x) {
    model.begin(name);
    return model.graph().add1(name, {x});
  };
}

}  // namespace arenite::testing
