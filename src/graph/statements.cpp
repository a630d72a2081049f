#include "src/graph/statements.hpp"

#include <utility>

#include "src/base/refuse.hpp"
#include "src/graph/parser.hpp"

namespace arenite::graph {

Statements::Statements(const OperatorTable& table)
    : table_(&table), parser_(std::make_unique<Parser>("", table, "")) {}
Statements::~Statements() = default;

Statements::Numbers Statements::add(std::string_view statement, Given values, bool with_results) {
  return take(
      {Step::Kind::add, std::string(statement), {values.begin(), values.end()}, with_results});
}

Statements::Numbers Statements::begin(std::string_view call, Given values) {
  return take({Step::Kind::begin, std::string(call), {values.begin(), values.end()}, true});
}

Statements::Numbers Statements::end(Given yields) {
  return take({Step::Kind::end, {}, {yields.begin(), yields.end()}, true});
}

Statements::Numbers Statements::apply(Parser& parser, const Step& step) {
  switch (step.kind) {
    case Step::Kind::add:
      return parser.append(step.text, step.values, step.with_results);
    case Step::Kind::begin:
      return parser.begin_block(step.text, step.values);
    case Step::Kind::end:
      break;
  }
  return parser.end_block(step.values);
}

Statements::Numbers Statements::take(Step step) {
  try {
    Numbers made = without_place([&] { return apply(*parser_, step); });
    steps_.push_back(std::move(step));
    return made;
  } catch (const Error&) {
    begin_anew();  // it may have added some of what it is made of
    throw;
  }
}

void Statements::undo() {
  if (steps_.empty()) refuse("a step taken back before the first", "one that was made");
  steps_.pop_back();
  begin_anew();
}

void Statements::begin_anew() {
  parser_ = std::make_unique<Parser>("", *table_, "");
  for (const Step& before : steps_) apply(*parser_, before);
}

const Value& Statements::value(std::int64_t number) const { return parser_->value(number); }

Graph Statements::graph(Given outputs) const {
  return without_place([&] { return parser_->graph({outputs.begin(), outputs.end()}); });
}

}  // namespace arenite::graph
