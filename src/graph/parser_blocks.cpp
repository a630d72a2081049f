#include "src/graph/parser.hpp"

namespace arenite::graph {

/// "{ … } else { … }": the first block without its name.
void Parser::blocks(Call& made) {
  const auto& names = made.definition->regions;
  for (std::size_t r = 0; r < names.size(); ++r) {
    if (r > 0) {
      if (!token_.is_name(names[r])) unexpected("'" + names[r] + "' and a block");
      advance();
    }
    block(made);
  }
}

void Parser::block(Call& made) {
  set_context(made.notes);
  const RegionId region = at(made.position, [&] {
    return builder_.begin_region(made.word, made.operands, made.attributes, made.regions.size());
  });
  made.regions.push_back(region);
  const std::vector<ValueId> parameters = graph_[region].parameters;
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
  builder_.end_region(yielded());
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
