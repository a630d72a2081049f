// Reads other ways to run a script: `entry` statements.
#include <arenite/graph/entries.hpp>

#include <utility>

#include "src/graph/parser.hpp"

namespace arenite::graph {

void Parser::entry(const std::vector<Target>& left) {
  const Token statement = token_;
  refuse_in_block(statement);
  if (!left.empty())
    lexer_.refuse(left[0].position, "a result of entry", "entry NAME = …, which has none");
  advance();
  const Token named = token_;
  Entry made{.name = text("a name"), .outputs = {}};
  if (accept('(')) {
    do {
      entry_setting(made);
    } while (accept(','));
    expect(')', "the settings of the entry");
  }
  expect('=', "entry " + made.name);
  made.outputs = outputs("the entry");
  entry_positions_.push_back(statement.position);
  graph_.entries.push_back(std::move(made));
  at(named.position, [&] { check_entry_name(graph_, graph_.entries.back().name); });
}

/// "mode=train", "averaged" or "keeps=[$1]"
void Parser::entry_setting(Entry& made) {
  const Token setting = token_;
  const auto begin = [&](bool is_second) {
    if (is_second) lexer_.refuse(setting.position, "a second " + describe(setting), "one");
    advance();
    if (!setting.is_name("averaged")) expect('=', setting.text);
  };
  if (setting.is_name("averaged")) {
    begin(std::exchange(made.averaged, true));
  } else if (setting.is_name("keeps")) {
    begin(!made.keeps.empty());
    for (const Reference& reference : references()) made.keeps.push_back(reference.value);
  } else if (setting.is_name("mode")) {
    begin(made.mode == Mode::train);
    if (!token_.is_name("train") && !token_.is_name("evaluate")) unexpected("train or evaluate");
    made.mode = token_.is_name("train") ? Mode::train : Mode::evaluate;
    advance();
  } else {
    unexpected("mode=…, averaged or keeps=[$…]");
  }
}

/// Said here, while the script's lines are known.
void Parser::check_entries() const {
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    at(entry_positions_[i],
       [&] { static_cast<void>(at_entry(graph_, builder_.table(), graph_.entries[i].name)); });
  }
}

}  // namespace arenite::graph
