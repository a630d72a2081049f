// Scripts that come statement by statement, each checked as it comes: for those who build graphs
// through an interface of text, and want to know at once what is wrong.
//
//   Statements script(operators());
//   const auto x = script.add("InputTensor(x, float32, [64, 784])", {}, true);
//   const auto w = script.add("ParameterTensor(w, float32, [784, 10])", {}, true);
//   const std::int64_t given[] = {x[0], w[0]};
//   const auto y = script.add("dense($1, $2)", given, true);
//   Graph graph = script.graph(y);
//
// Values go by numbers, from 1 on, and 0 is none. A statement is what stands right of '=' in a
// script; in it $1 is the first of the values that come with it, and a value that is none, or '_',
// an optional operand that is left out. One thread at a time.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::graph {

class Parser;

/// Runs `action`, whose Error loses its place in a text of one line, which the caller has.
template <class Action>
auto without_place(Action action) {
  try {
    return action();
  } catch (const Error& error) {
    ErrorText text = error.text();
    if (!text.where.starts_with(':')) throw;
    text.where.clear();
    throw Error(text);
  }
}

class Statements {
 public:
  using Numbers = std::vector<std::int64_t>;
  using Given = std::span<const std::int64_t>;

  explicit Statements(const OperatorTable& table);
  ~Statements();
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  /// One statement more; the numbers of its results. Without results it may be one that has none,
  /// as `train($1, …)` and `entry predict = $1`, or change what it gives new versions of: their
  /// numbers stand for these from here on. Throws Error, and changes nothing, on whatever is wrong
  /// with it.
  Numbers add(std::string_view statement, Given values, bool with_results);

  /// Begins the first block of an `if` or `loop`, whose call this is: what is added from here on is
  /// inside. The numbers of the block's parameters. Throws Error as `add`.
  Numbers begin(std::string_view call, Given values);

  /// Ends the innermost block, which yields these. There begins the next one of its op, of which
  /// this returns the parameters; behind the last, the op's results. Throws Error as `add`.
  Numbers end(Given yields);

  /// As if the last of these steps had not been. Throws Error where there is none.
  void undo();

  /// Throws Error on a number that no value has.
  const Value& value(std::int64_t number) const;

  /// All of it, with these for its outputs. Throws Error within a block, and on what only the whole
  /// shows to be wrong (graph::verify, training).
  Graph graph(Given outputs) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { add, begin, end } kind;
    std::string text;
    Numbers values;
    bool with_results;
  };
  Numbers take(Step step);
  void begin_anew();
  static Numbers apply(Parser& parser, const Step& step);

  const OperatorTable* table_;
  std::unique_ptr<Parser> parser_;
  std::vector<Step> steps_;  ///< with which to begin anew where one is refused halfway
};

}  // namespace arenite::graph
