// docs/script.ebnf against the parser, both ways: what the one accepts, the other does.
#include "tests/grammar/grammar.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "src/base/testing.hpp"
#include "src/graph/random_graph.hpp"
#include "src/graph/random_regions.hpp"

namespace arenite::testing {
namespace {

namespace fs = std::filesystem;

const fs::path root = ARENITE_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Grammar& grammar() {
  static const Grammar one(read(root / "docs/script.ebnf"));
  return one;
}

/// What the parser says of a script.
struct Verdict {
  std::optional<ErrorText> error;
  std::size_t at = 0;  // the byte that the error points to

  /// Whether the tokens are what is wrong, and not what they mean.
  bool is_syntax() const {
    if (!error) return false;
    static const std::regex token(
        "'.*'|the end of the script|unexpected character '.*'|"
        "a text without an end|a formula without an end|unknown escape '.*'");
    static const std::regex meaning(
        "operands only|name=value for each further attribute|'\\)', as all attributes of .*|"
        "operand '.*' of .*, which is not optional|an upper bound of at least 1 for .*|"
        "an integer of at most 64 bits|a number that a double can hold|"
        "a dimension of '.*', an integer of at least 0|'\\$' and a number below .*");
    return std::regex_match(error->found, token) && !std::regex_match(error->expected, meaning);
  }
};

std::size_t byte_of(const std::string& script, const std::string& where) {
  std::size_t line = 0, column = 0, at = 0;
  char colon = ':';
  std::istringstream(where.substr(where.find(':') + 1)) >> line >> colon >> column;
  while (--line > 0) at = script.find('\n', at) + 1;
  return at + column - 1;
}

Verdict parse(const std::string& script, const graph::OperatorTable& table = operators()) {
  try {
    graph::parse(script, table);
    return {};
  } catch (const Error& error) {
    return {error.text(), byte_of(script, error.text().where)};
  }
}

/// Both agree: on a script that is none, on where; on one that is, that only its meaning can be
/// wrong.
void compare(const std::string& script, const graph::OperatorTable& table = operators()) {
  const Verdict verdict = parse(script, table);
  const Derivation derived = grammar().matches(script);
  const std::string message = verdict.error ? Error(*verdict.error).what() : "nothing";
  if (derived.whole) {
    EXPECT_FALSE(verdict.is_syntax()) << message << "\nsaid of\n" << script;
    return;
  }
  ASSERT_TRUE(verdict.error) << "no script from byte " << derived.furthest << ", yet read:\n"
                             << script;
  // Where the grammar has a list of words, the parser reads any name, and looks at it later; a
  // buffer's type where its name might stand, too.
  const char fits_not = derived.furthest < script.size() ? script[derived.furthest] : ';';
  const std::size_t buffer = script.rfind("BufferTensor", derived.furthest);
  if (is_name_character(fits_not) || (fits_not == '[' && buffer != std::string::npos)) return;
  EXPECT_LE(verdict.at, derived.furthest) << message << "\nsaid of\n" << script;
  if (verdict.is_syntax()) {
    EXPECT_EQ(verdict.at, derived.furthest) << message << "\nsaid of\n" << script;
  }
}

/// What people wrote, and what fuzzers made of it.
std::vector<std::string> examples() {
  std::vector<std::string> all;
  const std::string page = read(root / "docs/scripts.md");
  const std::string open = "```arenite\n", close = "\n```";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    all.push_back(page.substr(at, page.find(close, at) - at));
  }
  for (const auto& file : fs::directory_iterator(root / "tests/fuzz/graph_text_corpus")) {
    const std::string text = read(file.path());
    if (text.starts_with('1')) all.push_back(text.substr(1));
  }
  return all;
}

TEST(Grammar, SaysOfEachRuleWhatItIs) {
  // A rule that is nowhere would throw; one that nobody names would be dead.
  const std::string text = read(root / "docs/script.ebnf");
  std::mt19937 random(1);
  for (const std::string& rule : grammar().rules()) {
    grammar().derive(rule, random, [](const auto&, const auto&) { return std::string(); });
    const std::regex name("\\b" + rule + "\\b");
    const auto times = std::distance(std::sregex_iterator(text.begin(), text.end(), name), {});
    if (rule != "script" && rule != "SPACE" && rule != "COMMENT") {
      EXPECT_GT(times, 1) << rule;
    }
  }
}

TEST(Grammar, DerivesWhatTheParserReads) {
  std::size_t read = 0;
  for (const std::string& script : examples()) {
    compare(script);
    read += parse(script).error ? 0 : 1;
  }
  EXPECT_GT(read, 60U);
}

TEST(Grammar, DerivesWhatGraphsArePrintedAs) {
  for (unsigned seed = 0; seed < fewer_where_slow(200U); ++seed) {
    const std::string text = graph::print(graph::testing::RandomGraph(seed).make());
    ASSERT_TRUE(grammar().matches(text).whole) << text;
    const std::string blocks = graph::print(graph::testing::RandomRegions(seed).make());
    ASSERT_TRUE(grammar().matches(blocks).whole) << blocks;
  }
}

/// A token more, less, twice, or in another's place; or a byte.
std::string damaged(std::string script, std::mt19937& random) {
  static const std::vector<std::string> tokens{
      ";",    ",",  "(",    ")",     "[",      "]",      "{",     "}",       "=",
      "@",    "<=", "_",    "$1",    "$77",    "result", "yield", "if",      "else",
      "loop", "1",  "-1",   "2.",    "\"x\"",  "x",      "1.2.3", "float32", "#",
      "%",    "\"", "+inf", "1e999", "Tensor", "\n",     "é",     "@in("};
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::size_t begin = below(script.size()), length = below(3) == 0 ? 1 + below(8) : 0;
  script.replace(begin, length, below(4) == 0 ? "" : tokens[below(tokens.size())]);
  return script;
}

TEST(Grammar, RefusesWhatTheParserRefusesAndWhere) {
  std::mt19937 random(2);
  int refused = 0;
  for (const std::string& script : examples()) {
    if (script.empty() || script.size() > 1500) continue;
    for (int i = 0; i < 30; ++i) {
      const std::string other = damaged(script, random);
      compare(other);
      refused += parse(other).is_syntax() ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 500);
}

/// Statements of the grammar behind values they may read. Where names must be known, they mostly
/// are.
class Statements {
 public:
  explicit Statements(unsigned seed) : random_(seed) {}

  std::string make() {
    const std::string statement = grammar().derive(
        "statement", random_,
        [this](const auto& rule, const auto& asked_by) { return choose(rule, asked_by); });
    return "$1 = InputTensor(x, float32, [rows<=4, 6]);\n$2 = InputTensor(n, int64, [1]);\n"
           "$3 = ParameterTensor(w, float32, [6]);\n" +
           statement + "\nresult = $1;\n";
  }

 private:
  std::string any(const std::vector<std::string>& list) { return list[random_() % list.size()]; }

  std::string choose(const std::string& rule, const std::string& asked_by) {
    if (random_() % 16 == 0) return {};
    if (rule == "REFERENCE")
      return asked_by == "target" ? "$" + std::to_string(++last_) : any({"$1", "$2", "$3"});
    if (asked_by == "operator") {
      std::string name = rule == "earlier_name" ? "" : any(operators().names());
      return rule == "TEXT" ? "\"" + name + "\"" : name == "if" || name == "loop" ? "relu" : name;
    }
    if (rule == "arguments" && asked_by == "branch") return "$2";
    if (rule == "arguments" && asked_by == "repetition") return "$2, _, $1, max_trips=2";
    if (rule == "targets" && asked_by == "repetition") {
      last_ += 2;
      return "$" + std::to_string(last_ - 1) + " , $" + std::to_string(last_);
    }
    if (rule == "NAME" && asked_by == "attribute")
      return any({"shape", "begin", "end", "eps", "kernel", "transpose_a", "momentum", "type"});
    if (rule == "NAME" && asked_by == "formula") return any({"swish", "x", "beta"});
    if (rule == "FORMULA" && asked_by == "formula") return any({"{ x }", "{ x * beta }", "{}"});
    if (rule == "NAME" && asked_by == "schedule") return any({"linear", "steps", "constant"});
    if (rule == "NAME" && asked_by == "setting") return any({"momentum", "weight_decay", "eps"});
    if (rule == "text" && asked_by == "setting") return any({"sgd", "\"sgd\"", "relu"});
    if (rule == "NAME" && asked_by == "size") return "rows";
    if (rule == "INTEGER" && random_() % 4 > 0) return any({"0", "1", "2", "+3", "-1"});
    return {};
  }

  std::mt19937 random_;
  long last_ = 3;
};

TEST(Grammar, MakesStatementsThatTheParserReads) {
  int read = 0, meant_wrong = 0;
  for (unsigned seed = 0; seed < fewer_where_slow(2000U) && !HasFailure(); ++seed) {
    const std::string script = Statements(seed).make();
    ASSERT_TRUE(grammar().matches(script).whole) << script;
    compare(script);
    ++(parse(script).error ? meant_wrong : read);
  }
  EXPECT_GT(read, fewer_where_slow(40));
  EXPECT_GT(meant_wrong, fewer_where_slow(500));
}

}  // namespace
}  // namespace arenite::testing
