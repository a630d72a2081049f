#include "src/graph/parser.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace arenite::graph {

/// "{ … } else { … }": the first block without its name.
void Parser::blocks(Call& made) {
  const auto& names = made.definition->regions;
  carry(made);
  for (std::size_t r = 0; r < names.size(); ++r) {
    if (r > 0) {
      if (!token_.is_name(names[r])) unexpected("'" + names[r] + "' and a block");
      advance();
    }
    block(made);
  }
}

/// What blocks make new versions of leaves them as a result, and enters those of a loop as what
/// they carry.
void Parser::carry(Call& made) {
  made.carried = renewed_in_blocks(*made.definition);
  if (made.carried.empty()) return;
  if (made.definition->control == Control::none) {
    lexer_.refuse(made.position, "a block of " + made.word + " that changes a value from outside",
                  "a block of 'if' or 'loop', or a new value, with a number of its own");
  }
  if (made.definition->control != Control::loop) return;
  const std::size_t first = made.definition->operands.size() - made.definition->variadic;
  made.operands.resize(std::max(made.operands.size(), first));
  for (const StorageId storage : made.carried) made.operands.push_back(renewed_.at(storage).now);
}

void Parser::block(Call& made) {
  const auto outside = std::pair(renewed_, origins_);
  set_context(made.notes);
  const RegionId region = at(made.position, [&] {
    return builder_.begin_region(made.word, made.operands, made.attributes, made.regions.size());
  });
  made.regions.push_back(region);
  std::vector<ValueId> parameters = graph_[region].parameters;
  if (made.definition->control == Control::loop) {
    for (auto storage = made.carried.rbegin(); storage != made.carried.rend(); ++storage) {
      renew(renewed_.at(*storage).now, parameters.back());
      parameters.pop_back();
    }
  }
  if (!parameters.empty()) {
    const Position position = token_.position;
    expect('(', "the call, before its block's parameters");
    const std::vector<Target> left = targets();
    expect(')', "the parameters");
    if (left.size() != parameters.size()) {
      lexer_.refuse(position,
                    std::to_string(left.size()) + " parameters of a block of " + made.word,
                    std::to_string(parameters.size()));
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      define(left[i], parameters[i]);
      annotate(left[i], parameters[i]);
    }
    for (const Target& target : left) merge(target);
  }
  expect('{', parameters.empty() ? made.word + "(…), before its block" : "the parameters");
  while (!token_.is_name("yield")) {
    if (token_.is('}') || token_.kind == TokenKind::end)
      unexpected("'yield …;'", "a block ends by naming what it yields, or with 'yield;'");
    statement();
  }
  std::vector<ValueId> results = yielded();
  for (const StorageId storage : made.carried) results.push_back(renewed_.at(storage).now);
  builder_.end_region(std::move(results));
  std::tie(renewed_, origins_) = outside;
}

std::vector<ValueId> Parser::yielded() {
  advance();
  std::vector<ValueId> all;
  if (!token_.is(';')) {
    do {
      const bool absent = token_.is_name("_");
      if (absent) advance();
      all.push_back(absent ? ValueId{} : reference());
    } while (accept(','));
  }
  expect(';', "what is yielded");
  expect('}', "'yield …;'");
  return all;
}

}  // namespace arenite::graph
