// Reads what a script says of training: `grad`, which becomes ops at once, and `train`, which is
// kept for whoever trains the graph.
#include <arenite/graph/passes.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/graph/parser.hpp"
#include "src/graph/passes/backward.hpp"
#include "src/graph/rate_schedules.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {

void Parser::refuse_in_block(const Token& statement) const {
  if (!builder_.in_region()) return;
  lexer_.refuse(statement.position, describe(statement) + " in a block", "it outside of blocks");
}

/// "name=[$1, $2]": different values, at least one.
std::vector<Parser::Reference> Parser::references() {
  std::vector<Reference> all;
  const Position position = token_.position;
  list([&] {
    const Token token = reference_token();
    const ValueId value = resolve(token);
    const auto same = [&](const Reference& other) { return other.value == value; };
    if (std::any_of(all.begin(), all.end(), same)) {
      lexer_.refuse(token.position, describe(token) + " a second time", "each value once");
    }
    all.push_back({value, token.position});
  });
  if (all.empty()) {
    lexer_.refuse(position, "an empty list", "at least one value");
  }
  return all;
}

void Parser::gradients(const std::vector<Target>& written) {
  const Token statement = token_;
  refuse_in_block(statement);
  advance();
  expect('(', "grad");
  const Token loss_token = reference_token();
  const ValueId loss = resolve(loss_token);
  expect(',', "the loss");
  if (!token_.is_name("wrt")) unexpected("wrt=[$…], the values to differentiate by");
  advance();
  expect('=', "wrt");
  std::vector<ValueId> wrt;
  for (const Reference& reference : references()) wrt.push_back(reference.value);
  expect(')', "the arguments of grad");
  expect(';', "the statement");
  const std::vector<Target> left = left_side(written, wrt.size());
  if (left.size() != wrt.size()) {
    lexer_.refuse(left.empty() ? statement.position : left[0].position,
                  std::to_string(left.size()) + " results of grad",
                  std::to_string(wrt.size()) + ", one a value of wrt");
  }

  for (const Target& target : left) {
    if (!target.has_notes) continue;
    lexer_.refuse(target.position, "notes on a result of grad", "none");
  }
  // Each gradient of a gradient would be some times as long as what it goes through.
  if (values_after(graph_, gradients_)[loss.index]) {
    lexer_.refuse(loss_token.position,
                  "a loss " + describe(loss_token) + " that depends on a gradient",
                  "a loss that depends on none");
  }

  set_context({});
  const std::vector<ValueId> found =
      at(loss_token.position, [&] { return add_gradients(builder_, {loss}, wrt); });
  op_positions_.resize(graph_.op_count(), statement.position);
  value_positions_.resize(graph_.value_count(), statement.position);
  // What follows may read the gradients.
  default_phase_ = Phase::backward;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!found[i]) {
      lexer_.refuse(
          left[i].position,
          "a gradient by '" + graph_[wrt[i]].name + "', which the loss does not depend on",
          "values that it is computed from");
    }
    define(left[i], found[i]);
    gradients_.push_back(found[i]);
  }
}

void Parser::training(const std::vector<Target>& left) {
  const Token statement = token_;
  refuse_in_block(statement);
  if (!left.empty()) {
    lexer_.refuse(left[0].position, "a result of train", "train(…), which has none");
  }
  if (graph_.training) {
    lexer_.refuse(statement.position, "a second train", "one, of the sum of all losses",
                  "the first is in line " + std::to_string(training_position_.line));
  }
  training_position_ = statement.position;
  advance();
  expect('(', "train");
  Training training;
  training.loss = loss();
  std::shared_ptr<const OperatorDefinition> optimizer;
  bool rate_given = false, check_given = false, batches_given = false;
  while (accept(',')) {
    const Token name = token_;
    const std::string word = this->word("name=…");
    if (token_.is('(') && word == "group") {
      training.groups.push_back(group(optimizer.get()));
      continue;
    }
    if (token_.is('(') && word == "average") {
      if (training.averaging) lexer_.refuse(name.position, "a second 'average'", "one");
      training.averaging = averaging();
      continue;
    }
    expect('=', word);
    if (word == "optimizer" && !optimizer) {
      optimizer = this->optimizer();
      training.optimizer = optimizer;
    } else if (word == "learning_rate" && !rate_given) {
      training.learning_rate = learning_rate();
      rate_given = true;
    } else if (word == "parameters" && training.parameters.empty()) {
      training.parameters = parameters();
    } else if (word == "schedule" && training.schedule.empty()) {
      training.schedule = schedule();
    } else if (word == "clip_value" && training.clip_value == 0) {
      training.clip_value = limit();
    } else if (word == "clip_norm" && training.clip_norm == 0) {
      training.clip_norm = limit();
    } else if (word == "check_loss" && !std::exchange(check_given, true)) {
      const Token check = token_;
      const double given = number();
      if (given != 0 && given != 1) lexer_.refuse(check.position, describe(check), "0 or 1");
      training.check_loss = given != 0;
    } else if (word == "accumulate" && !std::exchange(batches_given, true)) {
      const Token batches = token_;
      const std::int64_t given = integer("a number of batches");
      at(batches.position, [&] { check_accumulated(given); });
      training.accumulate = static_cast<int>(given);
    } else {
      optimizer_attribute(name, optimizer.get(), training.attributes);
    }
  }
  expect(')', "the arguments of train");
  expect(';', "the statement");
  const char* missing = !optimizer    ? "optimizer=…, as in optimizer=sgd"
                        : !rate_given ? "learning_rate=…"
                                      : nullptr;
  if (missing != nullptr) {
    lexer_.refuse(statement.position, "train without " + std::string(missing), "it");
  }
  if (training.parameters.empty()) training.parameters = graph_.trainable();
  if (training.parameters.empty()) {
    lexer_.refuse(statement.position, "train without a parameter that is not frozen",
                  "one, declared above");
  }
  graph_.training = std::move(training);
}

ValueId Parser::loss() {
  const Token token = reference_token();
  const ValueId id = resolve(token);
  const Value& value = graph_[id];
  if (value.type != DType::float32 || value.shape.elements() != 1) {
    lexer_.refuse(token.position,
                  "a loss " + describe(token) + " of " + std::string(to_string(value.type)) + " " +
                      to_string(value.shape),
                  "one float32");
  }
  return id;
}

std::shared_ptr<const OperatorDefinition> Parser::optimizer() {
  const Token token = token_;
  const std::string name = text("an optimizer");
  const auto definition = at(token.position, [&] { return definition_of(name); });
  if (!definition->written.empty()) at(token.position, [&] { check_optimizer(*definition); });
  if (!definition->is_optimizer()) {
    std::string known;
    for (const auto& [other, own] : written_) {
      if (own->is_optimizer()) known += (known.empty() ? "" : ", ") + other;
    }
    for (const std::string& other : builder_.table().names()) {
      if (builder_.table().find(other)->is_optimizer())
        known += (known.empty() ? "" : ", ") + other;
    }
    lexer_.refuse(token.position, "operator '" + name + "', which is no optimizer",
                  known.empty() ? "one of (parameter, gradient, learning_rate, …)" : known);
  }
  return definition;
}

double Parser::number() {
  const Token token = token_;
  const bool integer = token.kind == TokenKind::integer;
  if (!integer && token.kind != TokenKind::real) unexpected("a number");
  advance();
  return integer ? static_cast<double>(token.integer) : token.real;
}

double Parser::learning_rate() {
  const Token token = token_;
  const double rate = number();
  at(token.position, [&] { check_learning_rate(rate); });
  return rate;
}

double Parser::limit() {
  const Token token = token_;
  const double limit = number();
  if (!(limit > 0) || !std::isfinite(static_cast<float>(limit))) {
    lexer_.refuse(token.position, "gradients cut at " + describe(token),
                  "a number above 0 that a float can hold");
  }
  return limit;
}

/// "{ formula }", or "cosine(steps=1000)".
std::string Parser::schedule() {
  const Token token = token_;
  if (token.is('{')) {
    std::string formula = lexer_.formula(token).text;
    if (formula.empty()) lexer_.refuse(token.position, "an empty schedule", "a formula in braces");
    advance();
    return formula;
  }
  const std::string name = word("a schedule, as in cosine(steps=1000), or a formula in braces");
  expect('(', name);
  Attributes numbers;
  do {
    const Token number = token_;
    const std::string own = word("name=…");
    if (numbers.has(own))
      lexer_.refuse(number.position, "a second " + describe(number), "each number once");
    expect('=', own);
    if (token_.is('[')) {
      std::vector<std::int64_t> steps;
      list([&] { steps.push_back(integer("a step")); });
      numbers.set(own, std::move(steps));
    } else {
      numbers.set(own, this->number());
    }
  } while (accept(','));
  expect(')', "the numbers of " + name);
  return at(token.position, [&] { return rate_schedule(name, numbers); });
}

std::vector<ValueId> Parser::parameters() {
  std::vector<ValueId> all;
  for (const Reference& reference : references()) {
    const Value& value = graph_[reference.value];
    if (!value.is_declared() || graph_.storage(value.storage).cls != StorageClass::parameter) {
      lexer_.refuse(reference.position, "'" + value.name + "', which is no parameter",
                    "a ParameterTensor");
    }
    if (value.frozen) {
      lexer_.refuse(reference.position, "'" + value.name + "', which is frozen",
                    "parameters that may change");
    }
    all.push_back(reference.value);
  }
  return all;
}

/// "("*.bias", rank=1, rate=0.1, weight_decay=0)": pattern, rank and rate are optional.
ParameterGroup Parser::group(const OperatorDefinition* optimizer) {
  ParameterGroup group;
  expect('(', "group");
  if (token_.kind == TokenKind::text) {
    group.names = text("patterns of names");
    if (!token_.is(')')) expect(',', "the names");
  }
  bool rate_given = false;
  while (!token_.is(')')) {
    const Token name = token_;
    const std::string word = this->word("name=…");
    expect('=', word);
    if (word == "rank" && !group.most_rank) {
      const Token rank = token_;
      const std::int64_t most = integer("a rank");
      if (most < 0 || most > 8) lexer_.refuse(rank.position, "rank " + describe(rank), "0 to 8");
      group.most_rank = static_cast<int>(most);
    } else if (word == "rate" && !std::exchange(rate_given, true)) {
      const Token rate = token_;
      group.rate = number();
      at(rate.position, [&] { check_learning_rate(group.rate); });
    } else {
      optimizer_attribute(name, optimizer, group.attributes);
    }
    if (!token_.is(')')) expect(',', word);
  }
  expect(')', "the arguments of group");
  return group;
}

/// "(decay=0.999, begin=1, every=1)"
Averaging Parser::averaging() {
  Averaging average;
  expect('(', "average");
  while (!token_.is(')')) {
    const Token name = token_;
    const std::string word = this->word("name=…");
    expect('=', word);
    const Token number = token_;
    if (word == "decay") {
      average.decay = this->number();
    } else if (word == "begin" || word == "every") {
      (word == "begin" ? average.begin : average.every) = integer("a number of steps");
    } else {
      lexer_.refuse(name.position, "'" + word + "' of average", "decay, begin or every");
    }
    at(number.position, [&] { check_averaging(average); });
    if (!token_.is(')')) expect(',', word);
  }
  expect(')', "the arguments of average");
  return average;
}

void Parser::optimizer_attribute(const Token& name, const OperatorDefinition* optimizer,
                                 Attributes& attributes) {
  if (optimizer == nullptr) {
    lexer_.refuse(name.position, describe(name) + " before the optimizer", "optimizer=… first");
  }
  const auto schema = std::ranges::find(optimizer->attributes, name.text, &AttributeSchema::name);
  if (name.text == "rank" || name.text == "rate" || name.text == "group") {
    lexer_.refuse(name.position, describe(name) + " as a number of the optimizer",
                  "its own, or group(…) of several");
  }
  if (attributes.has(name.text) || is_training_setting(name.text)) {
    lexer_.refuse(name.position, "a second " + describe(name), "each argument once");
  }
  if (schema == optimizer->attributes.end()) unknown_attribute(name, *optimizer);
  attribute(attributes, *schema);
}

void Parser::check_training() const {
  if (!graph_.training) return;
  at(training_position_, [&] {
    Graph trained = graph_;
    apply_mode(trained, builder_.table(), Mode::train);
    const int most = trained.training->accumulate;
    const auto unreached = add_training(trained, builder_.table(), {trained.training->loss}, {},
                                        batch_of_update(most, most - 1, true));
    if (unreached.size() < graph_.training->parameters.size()) return;
    fail({.found = "a loss that depends on no parameter, not even '" +
                   trained[unreached.front()].name + "'",
          .expected = "one that training can change"});
  });
}

}  // namespace arenite::graph
