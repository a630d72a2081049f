#include <arenite/nn/nn.hpp>

#include "src/base/refuse.hpp"

#include <spdlog/fmt/fmt.h>

#include <numeric>
#include <utility>

namespace arenite::nn {

namespace {

LossValues cross_entropy_of(ModelBuilder& model, std::vector<graph::ValueId> operands,
                            std::int64_t divisor) {
  model.begin("loss");
  const auto results = model.graph().add("softmax_cross_entropy", std::move(operands),
                                         model.samples("divisor", divisor));
  return {.value = results.at(0), .statistics = results.at(1)};
}

}  // namespace

Loss cross_entropy() {
  return
      [](ModelBuilder& model, graph::ValueId logits, graph::ValueId labels, std::int64_t divisor) {
        return cross_entropy_of(model, {logits, labels}, divisor);
      };
}

LossValues weighted_cross_entropy(ModelBuilder& model, graph::ValueId logits, graph::ValueId labels,
                                  graph::ValueId weights, std::int64_t divisor) {
  return cross_entropy_of(model, {logits, labels, weights}, divisor);
}

graph::ValueId sum_over(ModelBuilder& model, const std::vector<graph::ValueId>& values,
                        const std::string& formula) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(model.shape(values.at(0)).rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const graph::ValueId sum = model.graph().add1(
      "reduce", values, {{"axes", axes}, {"expression", "yield sum(float64(" + formula + "))"}});
  return model.graph().add1("reshape", {sum}, {{"shape", std::vector<std::int64_t>{1}}});
}

ElementLoss of_elements(std::string name, std::string formula) {
  return [name = std::move(name), formula = std::move(formula)](
             ModelBuilder& model, graph::ValueId predictions, graph::ValueId targets) {
    const std::string where = model.begin(name);
    const Shape &shape = model.shape(predictions), &wanted = model.shape(targets);
    if (shape != wanted || shape.elements() == 0) {
      refuse("predictions " + to_string(shape) + " and targets " + to_string(wanted),
             "equal shapes, of one element or more", "loss '" + where + "'");
    }
    const graph::ValueId elements = model.elements(shape.elements()),
                         sum = sum_over(model, {predictions, targets}, formula);
    return model.graph().add1("map", {sum, elements}, {{"expression", "yield float32($1 / $2)"}});
  };
}

ElementLoss mse() { return of_elements("mse", "($1 - $2) * ($1 - $2)"); }
ElementLoss l1() { return of_elements("l1", "abs($1 - $2)"); }

ElementLoss huber(double delta) {
  if (!(delta > 0)) refuse(fmt::format("a Huber loss of delta {}", delta), "a number above 0");
  return of_elements("huber", fmt::format("min(abs($1 - $2), {0}) * (abs($1 - $2) - 0.5 * "
                                          "min(abs($1 - $2), {0}))",
                                          delta));
}

ElementLoss binary_cross_entropy() {
  return of_elements("bce", "max($1, 0) - $1 * $2 + log1p(exp(-abs($1)))");
}

}  // namespace arenite::nn
