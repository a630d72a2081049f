#include "src/expr/written.hpp"

#include <arenite/error.hpp>
#include <arenite/expr/text.hpp>

#include "src/expr/take_out.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

namespace arenite::expr {
namespace {

constexpr std::string_view step = "step";

/// Passes ask again and again: of some numbers it is known what they make.
class Known {
 public:
  template <class Make>
  Expression find(Type type, std::span<const double> given, Make make) {
    constexpr std::size_t most = 64;
    std::pair<Type, std::vector<std::uint64_t>> key{type, {}};
    for (const double number : given) key.second.push_back(std::bit_cast<std::uint64_t>(number));
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    if (found != all_.end()) return found->second;
    if (all_.size() == most) all_.clear();
    return all_.emplace(key, make()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<Type, std::vector<std::uint64_t>>, Expression> all_;  // by bits
};

struct Text {
  std::vector<std::string> operands;
  std::vector<Formula::Number> numbers;
  std::string text;
  bool is_optimizer = false;
  std::shared_ptr<Known> known = std::make_shared<Known>();

  bool has_step() const { return is_optimizer && operands.back() == step; }
  /// Those of an optimizer's weight.
  std::size_t states() const { return operands.size() - 3 - (has_step() ? 1 : 0); }

  Expression read(Type type, std::span<const double> given) const {
    std::vector<Parameter> parameters;
    for (const std::string& operand : operands)
      parameters.push_back({operand, has_step() && operand == step ? Type::float64 : type});
    for (std::size_t i = 0; i < numbers.size(); ++i)
      parameters.push_back({numbers[i].name, given[i]});
    return parse_named(text, parameters);
  }
  TakenOut parted(std::span<const double> given) const {
    try {
      return take_out(read(Type::float32, given), operands.size() - 1);
    } catch (const Error& error) {
      if (error.text().found != "'step', which no result needs") throw;
      fail({.found = "numbers with which 'step' is not needed",
            .expected = "some with which it is",
            .hint = "another optimizer without it"});
    }
  }
  Expression made(Type type, std::span<const double> given) const {
    return known->find(type, given,
                       [&] { return has_step() ? parted(given).rest : read(type, given); });
  }
  Expression once(std::span<const double> given) const {
    return known->find(Type::int64, given, [&] { return parted(given).once; });  // of steps
  }
};

void expect_updates(const std::string& name, const Text& of, const Expression& made) {
  if (made.results().size() != 1 + of.states()) {
    fail({.found = std::to_string(made.results().size()) + " results of optimizer '" + name + "'",
          .expected = std::to_string(1 + of.states()) + ", the next weight and states",
          .hint = "operands behind learning_rate are states, but for a last one named 'step'"});
  }
  for (std::size_t i = 0; i < made.results().size(); ++i) {
    if (made.result_type(i) == Type::float32) continue;
    fail({.found = "result " + std::to_string(i + 1) + " of type " +
                   std::string(to_string(made.result_type(i))),
          .expected = "float32, as the weight has it"});
  }
}

void expect_elements(const Expression& made) {
  const std::vector<bool> varies = made.varying();
  for (const NodeId result : made.results()) {
    if (!made.reduces() || varies[result]) continue;
    fail({.found = "a result that is one for a row",
          .expected = "one of each element",
          .hint = "`reduce` makes others: reduce($1, axes=[1]) { … }"});
  }
}

std::shared_ptr<const Formula> each_step(const Formula& of, const Text& text) {
  const auto once = [text](Type, std::span<const double> given) { return text.once(given); };
  std::vector<double> standards;
  for (const auto& number : text.numbers) standards.push_back(number.standard);
  const Expression standard = once({}, standards);
  return std::make_shared<const Formula>(Formula{.name = of.name + "." + std::string(step),
                                                 .is_operator = false,
                                                 .is_of_rows = false,
                                                 .is_optimizer = false,
                                                 .learning_rate = 0,
                                                 .each_step = {},
                                                 .operands = {std::string(step)},
                                                 .numbers = text.numbers,
                                                 .make = once,
                                                 .of_floats = {standard, standard},
                                                 .least_computed = 0,
                                                 .most_computed = 0});
}

}  // namespace

std::shared_ptr<const Formula> written(std::string name, std::vector<std::string> operands,
                                       std::vector<std::pair<std::string, double>> numbers,
                                       std::string text) {
  Text read{.operands = std::move(operands), .numbers = {}, .text = std::move(text)};
  std::vector<double> standards;
  for (auto& [number, standard] : numbers) {
    read.numbers.push_back({std::move(number), standard, Formula::Number::Range::any});
    standards.push_back(standard);
  }
  read.is_optimizer = read.operands.size() > 2 && read.operands[1] == "gradient" &&
                      read.operands[2] == "learning_rate";
  Formula made{
      .name = std::move(name),
      .is_operator = !read.is_optimizer,
      .is_of_rows = false,
      .is_optimizer = read.is_optimizer,
      .learning_rate = 0.001,
      .each_step = {},
      .operands = read.operands,
      .numbers = read.numbers,
      .make = [read](Type type, std::span<const double> given) { return read.made(type, given); },
      .of_floats = {},
      .least_computed = 0,
      .most_computed = 0};
  made.of_floats[0] = read.made(Type::float32, standards);
  made.of_floats[1] = read.is_optimizer ? made.of_floats[0] : read.made(Type::float64, standards);
  const Expression& standard = made.of_floats[0];
  made.is_of_rows = standard.reduces();
  read.is_optimizer ? expect_updates(made.name, read, standard) : expect_elements(standard);
  if (read.has_step()) {
    // Numbers may make more of what is new in each step other than the standard ones do.
    constexpr std::size_t spare = 8;
    const std::size_t most = standard.operands().size() + spare;
    made.operands.pop_back();
    for (std::size_t i = 1; made.operands.size() < most; ++i)
      made.operands.push_back(std::string(step) + "_" + std::to_string(i));
    made.each_step = each_step(made, read);
  }
  return std::make_shared<const Formula>(std::move(made));
}

}  // namespace arenite::expr
