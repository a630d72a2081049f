// Reads a script statement by statement, without the left sides: see statements.hpp.
#include <utility>

#include "src/base/refuse.hpp"
#include "src/graph/parser.hpp"

namespace arenite::graph {

void Parser::read(std::string_view piece, std::span<const std::int64_t> values) {
  in_pieces_ = true;
  piece_ = piece;
  script_ = piece_;
  lexer_ = Lexer(script_, filename_);
  given_.assign(values.begin(), values.end());
  formula_.reset();
  fresh_.clear();
  advance();
}

/// Behind a statement, which may end with ';' or not.
void Parser::expect_end_of_piece() {
  if (token_.kind != TokenKind::end) unexpected("nothing after the statement");
}

std::vector<std::int64_t> Parser::append(std::string_view piece,
                                         std::span<const std::int64_t> values, bool with_results) {
  read(piece, values);
  if (token_.kind == TokenKind::reference) {
    unexpected("a statement without its left side, as in 'relu($1)'",
               "results get numbers of their own");
  }
  numbers_results_ = with_results;
  const bool trained = graph_.training.has_value();
  statement();
  expect_end_of_piece();
  if (!trained) check_training();
  return std::exchange(fresh_, {});
}

std::vector<std::int64_t> Parser::begin_block(std::string_view piece,
                                              std::span<const std::int64_t> values) {
  read(piece, values);
  Call made = call();
  accept(';');
  expect_end_of_piece();
  if (made.definition->regions.empty()) {
    lexer_.refuse(made.position, "a block of " + made.word, "one of 'if' or 'loop'");
  }
  open_blocks_.push_back({std::move(made), next_number_, renewed_, origins_});
  return begin_region();
}

std::vector<std::int64_t> Parser::begin_region() {
  Call& made = open_blocks_.back().call;
  set_context(made.notes);
  const RegionId region = at(made.position, [&] {
    return builder_.begin_region(made.word, made.operands, made.attributes, made.regions.size());
  });
  made.regions.push_back(region);
  const std::vector<ValueId> parameters = graph_[region].parameters;
  for (const ValueId parameter : parameters) define(next_target(), parameter);
  return std::exchange(fresh_, {});
}

std::vector<std::int64_t> Parser::end_block(std::span<const std::int64_t> yields) {
  if (open_blocks_.empty()) refuse("the end of a block", "one that has begun");
  read("", yields);
  std::vector<ValueId> results;
  for (const std::int64_t number : yields)
    results.push_back(number == 0 ? ValueId{} : current(valued(number)));
  builder_.end_region(std::move(results));
  for (std::int64_t inside = open_blocks_.back().first_number; inside < next_number_; ++inside)
    definitions_.erase(inside);
  // What was read of other versions there, as views of them, is in the block.
  renewed_ = open_blocks_.back().renewed;
  origins_ = open_blocks_.back().origins;
  const Call& open = open_blocks_.back().call;
  if (open.regions.size() < open.definition->regions.size()) return begin_region();
  const Call made = std::move(open_blocks_.back().call);
  open_blocks_.pop_back();
  numbers_results_ = true;
  finish({}, made);
  return std::exchange(fresh_, {});
}

/// What a result gets that comes without a left side.
Parser::Target Parser::next_target() {
  fresh_.push_back(next_number_++);
  return {.number = fresh_.back(), .position = {}, .notes = {}};
}

/// The left side of a statement that comes without.
std::vector<Parser::Target> Parser::left_side(const std::vector<Target>& written,
                                              std::size_t results) {
  if (!numbers_results_ || !written.empty()) return written;
  std::vector<Target> left;
  while (left.size() < results) left.push_back(next_target());
  return left;
}

/// What a reference stands for in the statement.
std::int64_t Parser::number_of(const Token& reference) const {
  const auto place = static_cast<std::size_t>(reference.integer);
  if (reference.integer < 1 || place > given_.size()) {
    lexer_.refuse(reference.position, describe(reference),
                  given_.empty()
                      ? "no reference, as no values were given"
                      : "$1 to $" + std::to_string(given_.size()) + ", the values that were given");
  }
  return given_[place - 1];
}

ValueId Parser::valued(std::int64_t number) const {
  if (number == 0) refuse("no value, 0", "one that is there");
  const auto known = definitions_.find(number);
  if (known == definitions_.end() && number > 0 && number < next_number_) {
    refuse("value " + std::to_string(number) + ", of a block that has ended",
           "what the block yields");
  }
  if (known == definitions_.end())
    refuse("value " + std::to_string(number), "the number of a result");
  return known->second.value;
}

const Value& Parser::value(std::int64_t number) const { return graph_[valued(number)]; }

Graph Parser::graph(const std::vector<std::int64_t>& outputs) {
  if (!open_blocks_.empty())
    refuse("a script within a block of " + open_blocks_.back().call.word, "the end of the block");
  read("", {});
  graph_.outputs.clear();
  for (const std::int64_t number : outputs) graph_.outputs.push_back(current(valued(number)));
  check_whole({});
  return graph_;
}

}  // namespace arenite::graph
