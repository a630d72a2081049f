#include <arenite/arenite.h>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace arenite {
namespace {

using Values = std::vector<arenite_value>;

struct Builder : ::testing::Test {
  arenite_builder* builder = nullptr;
  std::string wrong;  // what the last call said

  Builder() { EXPECT_EQ(arenite_builder_create(&builder, nullptr), ARENITE_OK); }
  ~Builder() override { arenite_builder_free(builder); }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// What `call` writes into room for as many values; none where it is refused.
  template <class Call>
  Values made(std::size_t room, Call call) {
    Values results(room);
    std::size_t count = 0;
    char* message = nullptr;
    const arenite_status status = call(results.data(), &count, &message);
    EXPECT_EQ(status == ARENITE_OK, message == nullptr);
    wrong = message == nullptr ? "" : message;
    arenite_free(message);
    results.resize(status == ARENITE_OK ? count : 0);
    return results;
  }
  Values add(const char* statement, const Values& operands = {}, std::size_t room = 3) {
    return made(room, [&](auto... rest) {
      return take(arenite_builder_add, statement, operands, room, rest...);
    });
  }
  Values begin(const char* call, const Values& operands) {
    return made(
        4, [&](auto... rest) { return take(arenite_builder_begin, call, operands, 4, rest...); });
  }
  Values end(const Values& yields) {
    return made(4, [&](arenite_value* results, std::size_t* count, char** message) {
      return arenite_builder_end(builder, yields.data(), yields.size(), results, 4, count, message);
    });
  }
  arenite_value one(const char* statement, const Values& operands = {}) {
    const Values results = add(statement, operands);
    EXPECT_EQ(results.size(), 1U) << statement << ": " << wrong;
    return results.empty() ? 0 : results[0];
  }
  void say(const char* statement, const Values& operands = {}) {
    EXPECT_EQ(add(statement, operands, 0).size(), 0U);
    EXPECT_EQ(wrong, "") << statement;
  }
  std::string script(const Values& outputs) {
    char *text = nullptr, *message = nullptr;
    arenite_builder_script(builder, outputs.data(), outputs.size(), &text, &message);
    const std::string found = message == nullptr ? text : message;
    arenite_free(text);
    arenite_free(message);
    return found;
  }

 private:
  template <class Function>
  arenite_status take(Function function, const char* call, const Values& operands, std::size_t room,
                      arenite_value* results, std::size_t* count, char** message) {
    return function(builder, call, operands.data(), operands.size(), results, room, count, message);
  }
};

std::string printed(const char* script) { return graph::print(graph::parse(script, operators())); }

TEST_F(Builder, MakesTheScriptThatSaysTheSame) {
  const arenite_value x = one("InputTensor(x, float32, [rows<=8, 6])"),
                      labels = one("InputTensor(y, int32, [rows])"),
                      w = one("ParameterTensor(w, float32, [6, 4], uniform(-0.1, 0.1))"),
                      b = one("ParameterTensor(b, float32, [4])");
  const arenite_value hidden = one("dense($1, $2, $3) @where(\"first\")", {x, w, b}),
                      same = one("dense($1, $2, $3)", {x, w, 0}),
                      bent = one("map($1, $2) { yield $1 * sigmoid($2) }", {hidden, same});
  const Values found = add("softmax_cross_entropy($1, $2)", {bent, labels});
  ASSERT_EQ(found.size(), 3U);
  say("entry predict = $1", {bent});
  say("train($1, optimizer=adam, learning_rate=0.1, schedule={ 1 / sqrt($1) }, parameters=[$2, "
      "$3])",
      {found[0], w, b});
  EXPECT_EQ(script({found[0], bent}), printed(R"(
    $1 = InputTensor(x, float32, [rows<=8, 6]);
    $2 = InputTensor(y, int32, [rows]);
    $3 = ParameterTensor(w, float32, [6, 4], uniform(-0.1, 0.1));
    $4 = ParameterTensor(b, float32, [4]);
    $5 = dense($1, $3, $4) @where("first");
    $6 = dense($1, $3);
    $7 = map($5, $6) { yield $1 * sigmoid($2) }
    $8, $9, $10 = softmax_cross_entropy($7, $2);
    entry predict = $7;
    train($8, optimizer=adam, learning_rate=0.1, schedule={ 1 / sqrt($1) }, parameters=[$3, $4]);
    result = $8, $7;)"));
}

TEST_F(Builder, SaysWhatValuesAre) {
  const arenite_value x = one("InputTensor(image, uint8, [rows<=8, 28])");
  arenite_port port;
  ASSERT_EQ(arenite_builder_value(builder, x, &port, nullptr), ARENITE_OK);
  EXPECT_EQ(std::string(port.name), "image");
  EXPECT_EQ(port.type, ARENITE_UINT8);
  EXPECT_EQ(Values(port.shape, port.shape + port.rank), (Values{8, 28}));
  EXPECT_EQ(port.bytes, 224);
  EXPECT_EQ(arenite_builder_value(builder, 0, &port, nullptr), ARENITE_INVALID);
  EXPECT_EQ(arenite_builder_value(builder, 7, &port, nullptr), ARENITE_INVALID);
}

TEST_F(Builder, HasBlocksInBlocks) {
  const arenite_value x = one("InputTensor(x, float32, [4])"),
                      n = one("InputTensor(n, int64, [1])");
  const Values carried = begin("loop($1, _, $2, max_trips=5)", {n, x});
  ASSERT_EQ(carried.size(), 2U) << wrong;
  EXPECT_EQ(begin("if($1)", {carried[0]}), Values{}) << wrong;
  const arenite_value bent = one("relu($1)", {carried[1]});
  EXPECT_EQ(end({bent}), Values{}) << wrong;
  EXPECT_EQ(script({x}), "a script within a block of if; expected the end of the block");
  const arenite_value sum = one("add($1, $1)", {carried[1]});
  const Values chosen = end({sum});
  ASSERT_EQ(chosen.size(), 1U) << wrong;
  const Values last = end(chosen);
  ASSERT_EQ(last.size(), 1U) << wrong;
  EXPECT_EQ(script(last), printed(R"(
    $1 = InputTensor(x, float32, [4]);
    $2 = InputTensor(n, int64, [1]);
    $3 = loop($2, _, $1, max_trips=5) ($4, $5) {
      $6 = if($4) { $7 = relu($5); yield $7; } else { $8 = add($5, $5); yield $8; };
      yield $6;
    };
    result = $3;)"));
  add("relu($1)", {bent});
  EXPECT_EQ(wrong, "value 5, of a block that has ended; expected what the block yields");
  EXPECT_EQ(end({}), Values{});
  EXPECT_EQ(wrong, "the end of a block; expected one that has begun");
}

TEST_F(Builder, ChangesWhatItMakesNewVersionsOf) {
  const arenite_value total = one("BufferTensor(total, float32, [4])"),
                      x = one("InputTensor(x, float32, [4])");
  say("accumulate($1, $2)", {total, x});
  const arenite_value next = one("accumulate($1, $2)", {total, x});  // a value beside it
  EXPECT_EQ(script({total, next}), printed(R"(
    $1 = BufferTensor(total, float32, [4]);
    $2 = InputTensor(x, float32, [4]);
    accumulate($1, $2);
    $3 = accumulate($1, $2);
    result = $1, $3;)"));
}

TEST_F(Builder, GivesGradients) {
  const arenite_value w = one("ParameterTensor(w, float32, [4])"),
                      loss = one("reduce($1, axes=[0], keep=1) { yield sum($1 * $1) }", {w});
  const arenite_value gradient = one("grad($1, wrt=[$2])", {loss, w});
  arenite_port port;
  ASSERT_EQ(arenite_builder_value(builder, gradient, &port, nullptr), ARENITE_OK);
  EXPECT_EQ(Values(port.shape, port.shape + port.rank), Values{4});
  EXPECT_EQ(script({gradient}), printed(R"(
    $1 = ParameterTensor(w, float32, [4]);
    $2 = reduce($1, axes=[0], keep=1) { yield sum($1 * $1) }
    $3 = grad($2, wrt=[$1]);
    result = $3;)"));
}

TEST_F(Builder, SaysWhatIsWrongAndStaysAsItWas) {
  const arenite_value x = one("InputTensor(x, float32, [2, 3])"),
                      w = one("ParameterTensor(w, float32, [4, 3])"),
                      labels = one("InputTensor(y, int32, [2])"), y = one("relu($1)", {x});
  const std::string before = script({y});
  const auto refused = [&](const char* statement, const Values& operands, std::size_t room = 3) {
    EXPECT_EQ(add(statement, operands, room), Values{});
    EXPECT_EQ(script({y}), before) << statement;
    return wrong;
  };
  EXPECT_EQ(refused("dense($1, $2)", {x, w}).substr(0, 24), "dense: operand 'weight' ");
  EXPECT_EQ(
      refused("rellu($1)", {x}),
      "unknown operator 'rellu'; expected a registered operator (hint: did you mean 'relu'?)");
  EXPECT_EQ(refused("relu($1, alpha=1)", {x}),
            "relu: unknown attribute 'alpha'; expected no attributes");
  EXPECT_EQ(refused("relu($2)", {x}), "'$2'; expected $1 to $1, the values that were given");
  EXPECT_EQ(refused("relu($1)", {}), "'$1'; expected no reference, as no values were given");
  EXPECT_EQ(refused("relu($1)", {9}), "value 9; expected the number of a result");
  EXPECT_EQ(refused("grad($1, wrt=[$2])", {0, x}), "no value, 0; expected one that is there");
  EXPECT_EQ(begin("loop($1, _, $2, max_trips=3)", {x, y}), Values{});
  EXPECT_EQ(wrong.substr(0, 4), "loop");
  EXPECT_EQ(refused("relu($1)", {0}), "'$1'; expected operand 'x' of relu, which is not optional");
  EXPECT_EQ(refused("$4 = relu($1)", {x}),
            "'$4'; expected a statement without its left side, as in 'relu($1)' (hint: results get "
            "numbers of their own)");
  EXPECT_EQ(refused("relu($1); relu($1)", {x}), "'relu'; expected nothing after the statement");
  EXPECT_EQ(refused("relu($1)", {x}, 0), "0 results of relu; expected 1");
  EXPECT_EQ(refused("softmax_cross_entropy($1, $2)", {x, labels}, 1).substr(0, 7), "room fo");
}

TEST_F(Builder, TakesBackWhatIsRefusedHalfway) {
  const arenite_value w = one("ParameterTensor(w, float32, [1])"),
                      v = one("ParameterTensor(v, float32, [1])"), loss = one("mul($1, $1)", {w});
  const std::string before = script({loss});
  add("grad($1, wrt=[$2, $3])", {loss, w, v});  // gradients are made before one is missed
  EXPECT_EQ(wrong.substr(0, 17), "a gradient by 'v'");
  EXPECT_EQ(script({loss}), before);
  add("BufferTensor(b, int32, [2], constant(0.5))");  // declared before its beginning is looked at
  EXPECT_NE(wrong, "");
  one("BufferTensor(b, int32, [2])");
  const arenite_value next = one("relu($1)", {loss});
  EXPECT_GT(next, loss);
  add("if($1) { yield $1; } else { yield $1; }", {loss});
  EXPECT_EQ(wrong, "'if' as a statement; expected the begin of its first block");
  EXPECT_EQ(begin("relu($1)", {loss}), Values{});
  EXPECT_EQ(wrong, "a block of relu; expected one of 'if' or 'loop'");
  const Values carried = begin("loop(_, _, $1, max_trips=3)", {loss});
  ASSERT_EQ(carried.size(), 2U) << wrong;
  add("accumulate($1, $2)", {w, carried[1]}, 0);
  EXPECT_EQ(wrong,
            "accumulate without results, in a block; expected results, for the block to yield");
  add("InputTensor(late, float32, [2])");
  EXPECT_EQ(wrong, "'InputTensor' in a block; expected declarations outside, before the statement");
  EXPECT_EQ(end({carried[0]}), Values{});
  EXPECT_NE(wrong, "") << "another type";
  EXPECT_EQ(end({carried[1]}).size(), 1U) << wrong;
}

TEST_F(Builder, ReadsViewsOfNewVersionsInBlocksAndBehind) {
  const arenite_value total = one("BufferTensor(total, float32, [8])"),
                      x = one("InputTensor(x, float32, [8])"),
                      n = one("InputTensor(n, int64, [1])"),
                      half = one("slice($1, begin=0, end=4)", {total});
  say("accumulate($1, $2)", {total, x});
  const Values carried = begin("loop($1, _, $2, max_trips=3)", {n, x});
  ASSERT_EQ(carried.size(), 2U) << wrong;
  one("relu($1)", {half});
  const Values last = end({one("relu($1)", {carried[1]})});
  ASSERT_EQ(last.size(), 1U) << wrong;
  const arenite_value behind = one("relu($1)", {half});
  EXPECT_EQ(script({last[0], behind}).substr(0, 4), "$1 =");
}

TEST_F(Builder, TakesBackSteps) {
  const arenite_value x = one("InputTensor(x, float32, [8])"), y = one("relu($1)", {x});
  const std::string before = script({y});
  const auto undo = [&] {
    made(0, [&](arenite_value*, std::size_t*, char** message) {
      return arenite_builder_undo(builder, message);
    });
  };
  EXPECT_EQ(begin("if($1)", {x}), Values{});  // a condition that is none: said at the end
  EXPECT_EQ(end({y}), Values{}) << wrong;
  EXPECT_EQ(end({y}), Values{});
  EXPECT_EQ(wrong.substr(0, 3), "if:") << wrong;
  undo();
  undo();
  EXPECT_EQ(script({y}), before);
  EXPECT_EQ(one("gelu($1)", {y}), y + 1);
  add("train($1, optimizer=sgd, learning_rate=1)",
      {one("reduce($1, axes=[0], keep=1) { yield sum($1) }", {y})}, 0);
  EXPECT_NE(wrong, "") << "nothing to train";
  for (int i = 0; i < 4; ++i) undo();
  EXPECT_EQ(wrong, "");
  undo();
  EXPECT_EQ(wrong, "a step taken back before the first; expected one that was made");
}

TEST(BuilderOfNothing, IsRefused) {
  EXPECT_EQ(arenite_builder_create(nullptr, nullptr), ARENITE_INVALID);
  EXPECT_EQ(arenite_builder_add(nullptr, "", nullptr, 0, nullptr, 0, nullptr, nullptr),
            ARENITE_INVALID);
  arenite_builder* builder = nullptr;
  ASSERT_EQ(arenite_builder_create(&builder, nullptr), ARENITE_OK);
  arenite_value value = 0;
  EXPECT_EQ(arenite_builder_add(builder, nullptr, nullptr, 0, &value, 1, nullptr, nullptr),
            ARENITE_INVALID);
  EXPECT_EQ(arenite_builder_add(builder, "relu($1)", nullptr, 1, &value, 1, nullptr, nullptr),
            ARENITE_INVALID);
  EXPECT_EQ(arenite_builder_add(builder, "", nullptr, 0, nullptr, 1, nullptr, nullptr),
            ARENITE_INVALID);
  EXPECT_EQ(arenite_builder_script(builder, nullptr, 0, nullptr, nullptr), ARENITE_INVALID);
  arenite_builder_free(builder);
}

}  // namespace
}  // namespace arenite
