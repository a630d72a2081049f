// Optimizers but for sgd, straight from what PyTorch's pages and the papers say of one element.
#include "tests/reference/operator_cases.hpp"
#include "tests/reference/rules.hpp"

#include <cmath>

namespace arenite::reference {
namespace {

/// What a step sees of an element, and changes: the weight and its states. `same` is what stands
/// behind the states.
struct Element {
  double weight, gradient, rate;
  std::vector<double> state, same;
};

class Numbers {
 public:
  explicit Numbers(Call& call) : call_(call) {}

  double operator[](const char* name) const { return call_.attributes().real(name); }
  double decayed(const Element& e) const { return e.gradient + (*this)["weight_decay"] * e.weight; }
  /// A running mean, which moves by 1 − beta.
  double move(double& mean, const char* beta, double to) const {
    return mean = (*this)[beta] * mean + (1 - (*this)[beta]) * to;
  }
  Call& call() const { return call_; }

 private:
  Call& call_;
};

using Step = void (*)(const Numbers&, Element&);

/// `most`: AMSGrad's.
template <bool is_decoupled, bool most>
void adam(const Numbers& n, Element& e) {
  const double g = is_decoupled ? e.gradient : n.decayed(e);
  if (is_decoupled) e.weight -= e.rate * n["weight_decay"] * e.weight;
  const double mean = n.move(e.state[0], "beta1", g);
  double square = n.move(e.state[1], "beta2", g * g);
  if (most) square = e.state[2] = std::fmax(e.state[2], square);
  e.weight -= e.rate * e.same[0] * mean / (std::sqrt(square) * e.same[1] + n["eps"]);
}

template <bool is_centered, bool has_momentum>
void rms_prop(const Numbers& n, Element& e) {
  const double g = n.decayed(e);
  double square = n.move(e.state[0], "alpha", g * g);
  if (is_centered) square -= std::pow(n.move(e.state[1], "alpha", g), 2);
  double step = g / (std::sqrt(square) + n["eps"]);
  if (has_momentum) step = e.state.back() = n["momentum"] * e.state.back() + step;
  e.weight -= e.rate * step;
}

void adadelta(const Numbers& n, Element& e) {
  const double g = n.decayed(e), square = n.move(e.state[0], "rho", g * g),
               step = std::sqrt((e.state[1] + n["eps"]) / (square + n["eps"])) * g;
  n.move(e.state[1], "rho", step * step);
  e.weight -= e.rate * step;
}

void adagrad(const Numbers& n, Element& e) {
  const double g = n.decayed(e);
  e.state[0] += g * g;
  e.weight -= e.rate * e.same[0] * g / (std::sqrt(e.state[0]) + n["eps"]);
}

void lion(const Numbers& n, Element& e) {
  double mean = e.state[0];
  n.move(mean, "beta1", e.gradient);
  n.call().decide(mean > 0, std::fabs(mean));
  e.weight -= e.rate * ((mean > 0 ? 1 : mean < 0 ? -1 : 0) + n["weight_decay"] * e.weight);
  n.move(e.state[0], "beta2", e.gradient);
}

void dampened(const Numbers& n, Element& e) {
  e.state[0] = n["momentum"] * e.state[0] + e.same[0] * n.decayed(e);
  e.weight -= e.rate * e.state[0];
}

void nesterov(const Numbers& n, Element& e) {
  const double g = n.decayed(e);
  e.state[0] = n["momentum"] * e.state[0] + g;
  e.weight -= e.rate * (g + n["momentum"] * e.state[0]);
}

/// Element i of a weight: its states begin behind the learning rate, and are results behind the
/// first.
Element element(Call& call, std::int64_t i) {
  const std::size_t states = call.results() - 1;
  Element e{call.in(0)[i], call.in(1)[i], call.in(2)[0], {}, {}};
  for (std::size_t k = 3; k < call.operands(); ++k) {
    if (k < 3 + states) {
      e.state.push_back(call.in(k)[i]);
    } else {
      e.same.push_back(call.in(k)[0]);
    }
  }
  return e;
}

void store(Call& call, std::int64_t i, const Element& e) {
  call.out(0)[i] = e.weight;
  for (std::size_t k = 0; k < e.state.size(); ++k) call.out(k + 1)[i] = e.state[k];
}

void lamb(Call& call) {
  const Numbers n(call);
  const std::int64_t count = call.in(0).shape.elements();
  std::vector<double> steps;
  double of_weight = 0, of_step = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Element e = element(call, i);
    const double mean = n.move(e.state[0], "beta1", e.gradient) * e.same[0],
                 square = n.move(e.state[1], "beta2", e.gradient * e.gradient);
    steps.push_back(mean / (std::sqrt(square) * e.same[1] + n["eps"]) +
                    n["weight_decay"] * e.weight);
    of_weight += e.weight * e.weight;
    of_step += steps.back() * steps.back();
    store(call, i, e);
  }
  const double trust = of_weight > 0 && of_step > 0 ? std::sqrt(of_weight / of_step) : 1;
  for (std::int64_t i = 0; i < count; ++i)
    call.out(0)[i] -= call.in(2)[0] * trust * steps[static_cast<std::size_t>(i)];
}

}  // namespace

void add_optimizer_rules(Rules& rules) {
  const std::pair<const char*, Step> of_elements[] = {
      {"adadelta", adadelta},
      {"adagrad", adagrad},
      {"adam", adam<false, false>},
      {"adam_amsgrad", adam<false, true>},
      {"adamw", adam<true, false>},
      {"adamw_amsgrad", adam<true, true>},
      {"lion", lion},
      {"rms_prop", rms_prop<false, false>},
      {"rms_prop_centered", rms_prop<true, false>},
      {"rms_prop_centered_momentum", rms_prop<true, true>},
      {"rms_prop_momentum", rms_prop<false, true>},
      {"sgd_dampened", dampened},
      {"sgd_nesterov", nesterov}};
  for (const auto& [name, step] : of_elements) {
    rules[name] = [step = step](Call& call) {
      for (std::int64_t i = 0; i < call.in(0).shape.elements(); ++i) {
        Element e = element(call, i);
        step(Numbers(call), e);
        store(call, i, e);
      }
    };
  }
  rules["lamb"] = lamb;
}

std::vector<OperatorCase> optimizer_cases(const graph::OperatorTable& table) {
  std::vector<OperatorCase> all;
  for (const std::string& name : table.names()) {
    const auto definition = table.find(name);
    if (!definition->is_optimizer() || name == "sgd") continue;
    std::vector<CaseOperand> operands;
    for (const graph::OperandSchema& operand : definition->operands) {
      const bool is_like_weight =
          operand.renews != graph::Renews::nothing || operand.name == "gradient";
      // Means of squares, which are more than the squares of means; and what is a factor.
      const bool is_square = operand.name.find("sq") != std::string::npos ||
                             operand.name == "sum" || operand.name == "acc_delta";
      operands.push_back({.shape = is_like_weight ? Shape{3, 37} : Shape{1},
                          .low = is_square        ? 1.5
                                 : is_like_weight ? -1.0
                                                  : 0.1,
                          .high = is_square ? 4.0 : 1.0});
    }
    all.push_back({name, std::move(operands), {{"weight_decay", 0.1}}});
  }
  return all;
}

}  // namespace arenite::reference
