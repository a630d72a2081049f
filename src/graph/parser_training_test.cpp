// Scripts that say how they are trained.
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <string>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

const std::string forward = R"($1 = InputTensor(x, float32, [4, 3]);
$2 = InputTensor(label, int32, [4]);
$3 = ParameterTensor(weight, float32, [3, 2]);
$4 = ParameterTensor(unused, float32, [2]);
$5 = dense($1, $3);
$6, $7, $8 = softmax_cross_entropy($5, $2, divisor=4);
)";

Graph read(const std::string& statements) {
  return parse(forward + statements + "\nresult = $6;", operators(), "f");
}

std::string error(const std::string& statements) {
  return error_of([&] { read(statements); });
}

TEST(ParseTraining, KeepsWhatTrainSays) {
  const Graph graph = read(
      "train($6, optimizer=sgd, momentum=0.9, learning_rate=1, weight_decay=0.5, "
      "parameters=[$3]);");
  ASSERT_TRUE(graph.training);
  EXPECT_EQ(graph[graph.training->loss].shape, Shape{1});
  EXPECT_EQ(graph.training->optimizer->name, "sgd");
  EXPECT_EQ(graph.training->learning_rate, 1);
  EXPECT_EQ(graph.training->attributes, (Attributes{{"momentum", 0.9}, {"weight_decay", 0.5}}));
  ASSERT_EQ(graph.training->parameters.size(), 1U);
  EXPECT_EQ(graph[graph.training->parameters[0]].name, "weight");
}

TEST(ParseTraining, TrainsAllThatIsNotFrozenUnlessItSaysWhat) {
  const Graph graph = read(
      "$9 = ParameterTensor(held, float32, [2], frozen);\n"
      "train($6, optimizer=sgd, learning_rate=1);");
  EXPECT_EQ(graph.training->parameters, (std::vector{graph.find("weight"), graph.find("unused")}));
  EXPECT_EQ(error_of([] {
              parse(
                  "$1 = InputTensor(loss, float32, [1]);\n"
                  "train($1, optimizer=sgd, learning_rate=1);\nresult = $1;",
                  operators(), "f");
            }),
            "f:2:1: train without a parameter that is not frozen; expected one, declared above");
}

TEST(ParseTraining, PrintsAndParsesBackToAnEqualGraph) {
  for (const char* statements :
       {"train($6, optimizer=sgd, learning_rate=0.25, momentum=0.9, parameters=[$3]);",
        "train($6, optimizer=adamw, learning_rate=1, schedule={ 1 / $1 }, parameters=[$3]);",
        "train($6, optimizer=lion, learning_rate=1, schedule=cosine(steps=10, warm_up=2), "
        "clip_value=0.5, clip_norm=2, parameters=[$3]);",
        "$9, $10 = grad($6, wrt=[$3, $1]); $11 = relu($9);"}) {
    const Graph graph = read(statements);
    const std::string text = print(graph);
    const Graph again = parse(text, operators());
    std::string why;
    EXPECT_TRUE(equal(graph, again, &why)) << why << '\n' << text;
    EXPECT_EQ(print(again), text);
  }
}

TEST(ParseTraining, EqualLooksAtTraining) {
  const auto why = [](const std::string& other) {
    std::string text;
    equal(read("train($6, optimizer=sgd, learning_rate=1, parameters=[$3]);"), read(other), &text);
    return text;
  };
  EXPECT_EQ(why(""), "training: some against none");
  EXPECT_EQ(why("train($6, optimizer=sgd, learning_rate=2, parameters=[$3]);"),
            "the optimizer: attributes against others");
  EXPECT_EQ(why("train($6, optimizer=sgd, learning_rate=1, momentum=0.5, parameters=[$3]);"),
            "the optimizer: attributes against others");
  for (const char* setting : {"clip_norm=1", "clip_value=1", "schedule={ 1 / $1 }"}) {
    EXPECT_EQ(why("train($6, optimizer=sgd, learning_rate=1, " + std::string(setting) +
                  ", parameters=[$3]);"),
              "the optimizer: attributes against others");
  }
  EXPECT_EQ(why("train($6, optimizer=sgd, learning_rate=1, parameters=[$3]);"), "");
}

TEST(ParseTraining, SaysWhatIsWrongWithTrain) {
  EXPECT_EQ(error("train($5, optimizer=sgd);"),
            "f:7:7: a loss '$5' of float32 [4, 2]; expected one float32");
  EXPECT_EQ(error("$9 = train($6);"),
            "f:7:1: a result of train; expected train(…), which has none");
  EXPECT_EQ(error("train($6, optimizer=sgdd);"),
            "f:7:21: unknown operator 'sgdd'; expected a registered operator (hint: did you mean "
            "'sgd'?)");
  const std::string no_optimizer = error("train($6, optimizer=relu);");
  EXPECT_TRUE(no_optimizer.starts_with(
      "f:7:21: operator 'relu', which is no optimizer; expected adadelta, adagrad, "))
      << no_optimizer;
  EXPECT_EQ(error("train($6, momentum=0.9, optimizer=sgd);"),
            "f:7:11: 'momentum' before the optimizer; expected optimizer=… first");
  EXPECT_EQ(error("train($6, optimizer=sgd, speed=1);"),
            "f:7:26: sgd: unknown attribute 'speed'; expected one of momentum, weight_decay");
  EXPECT_EQ(error("train($6, optimizer=sgd, momentum=0.5, momentum=0.5);"),
            "f:7:40: a second 'momentum'; expected each argument once");
  EXPECT_EQ(error("train($6, optimizer=sgd, learning_rate=fast);"),
            "f:7:40: 'fast'; expected a number");
  EXPECT_EQ(
      error("train($6, optimizer=sgd, learning_rate=1e300);"),
      "f:7:40: a learning rate of 1e+300; expected a number of at least 0 that a float can hold");
  EXPECT_EQ(
      error("train($6, optimizer=sgd, learning_rate=-1);"),
      "f:7:40: a learning rate of -1.0; expected a number of at least 0 that a float can hold");
  EXPECT_EQ(error("train($6, optimizer=sgd, parameters=[$1]);"),
            "f:7:38: 'x', which is no parameter; expected a ParameterTensor");
  EXPECT_EQ(error("train($6, optimizer=sgd, parameters=[$3, $3]);"),
            "f:7:42: '$3' a second time; expected each value once");
  EXPECT_EQ(error("train($6, optimizer=sgd, parameters=[]);"),
            "f:7:37: an empty list; expected at least one value");
  EXPECT_EQ(error("train($6, optimizer=sgd, parameters=[$3]);"),
            "f:7:1: train without learning_rate=…; expected it");
  EXPECT_EQ(error("train($6, learning_rate=1);"),
            "f:7:1: train without optimizer=…, as in optimizer=sgd; expected it");
  const std::string good = "train($6, optimizer=sgd, learning_rate=1, parameters=[$3]);";
  EXPECT_EQ(error(good), "(no error)");
  EXPECT_EQ(error(good + "\n" + good),
            "f:8:1: a second train; expected one, of the sum of all losses (hint: the first is in "
            "line 7)");
  // What only the gradients and updates find has the statement's line.
  EXPECT_EQ(error("train($6, optimizer=sgd, learning_rate=1, parameters=[$4]);"),
            "f:7:1: a loss that depends on no parameter, not even 'unused'; expected one that "
            "training can "
            "change");
  EXPECT_EQ(error("$9 = ParameterTensor(held, float32, [2], frozen);\n"
                  "train($6, optimizer=sgd, learning_rate=1, parameters=[$3, $9]);"),
            "f:8:59: 'held', which is frozen; expected parameters that may change");
  EXPECT_EQ(error("train($6, optimizer=sgd, learning_rate=1, momentum=-1, parameters=[$3]);"),
            "f:7:1: sgd 'weight': momentum=-1.0; expected a number from 0 to below 1");
  EXPECT_EQ(error("$9 = InputTensor(go, int64, [1]); if($9) { " + good + " yield; }"),
            "f:7:44: 'train' in a block; expected it outside of blocks");
}

TEST(ParseTraining, SaysWhatIsWrongWithSettings) {
  const auto with = [](const std::string& setting) {
    return error("train($6, optimizer=adam, learning_rate=1, parameters=[$3], " + setting + ");");
  };
  EXPECT_EQ(with("schedule=cosine(steps=10)"), "(no error)");
  EXPECT_EQ(with("schedule=cosin(steps=10)"),
            "f:7:70: schedule 'cosin'; expected one of constant, cosine, cosine_restarts, "
            "exponential, linear, multi_step, one_cycle, polynomial, staircase, triangle (hint: "
            "did you mean "
            "'cosine'?)");
  EXPECT_EQ(
      with("schedule=cosine(period=10)"),
      "f:7:70: schedule 'cosine' with 'period'; expected numbers steps, least = 0, warm_up = 0");
  EXPECT_EQ(with("schedule=cosine(least=1)"),
            "f:7:70: schedule 'cosine' without 'steps'; expected numbers steps, least = 0, "
            "warm_up = 0");
  EXPECT_EQ(with("schedule=cosine(steps=0)"),
            "f:7:70: schedule 'cosine' with steps=0.0; expected a finite number above 0");
  EXPECT_EQ(with("schedule=1"),
            "f:7:70: '1'; expected a schedule, as in cosine(steps=1000), or a "
            "formula in braces");
  EXPECT_EQ(with("schedule={ yield $1, 2 * $1 }"),
            "f:7:1: the schedule { yield $1, 2 * $1 }; expected a formula of one number, by which "
            "the learning rate is multiplied");
  EXPECT_EQ(with("schedule={ }"), "f:7:70: an empty schedule; expected a formula in braces");
  EXPECT_EQ(with("schedule=linear(steps=1, steps=2)"),
            "f:7:86: a second 'steps'; expected each number once");
  EXPECT_EQ(with("schedule=one_cycle(steps=1, up=1.5)"),
            "f:7:70: schedule 'one_cycle' with up=1.5; expected a number from 0 to 1");
  EXPECT_NE(with("schedule={ $2 }"), "(no error)");
  EXPECT_EQ(with("clip_norm=0"),
            "f:7:71: gradients cut at '0'; expected a number above 0 that a "
            "float can hold");
  EXPECT_EQ(with("clip_value=1, clip_value=2"),
            "f:7:75: a second 'clip_value'; expected each argument once");
  EXPECT_EQ(with("beta1=1"),
            "f:7:1: adam 'weight': beta1=1.0; expected a number from 0 to below 1");
}

TEST(ParseTraining, SaysWhatIsWrongWithGrad) {
  EXPECT_EQ(error("$9 = grad($6);"), "f:7:13: ')'; expected ',' after the loss");
  EXPECT_EQ(error("$9 = grad($6, $3);"),
            "f:7:15: '$3'; expected wrt=[$…], the values to differentiate by");
  EXPECT_EQ(error("$9 = grad($6, wrt=[$3, $1]);"),
            "f:7:1: 1 results of grad; expected 2, one a value of wrt");
  EXPECT_EQ(error("grad($6, wrt=[$3]);"),
            "f:7:1: 0 results of grad; expected 1, one a value of wrt");
  EXPECT_EQ(error("$9 = grad($5, wrt=[$3]);"),
            "f:7:11: value 'dense': a loss of shape [4, 2]; expected a single element");
  EXPECT_EQ(
      error("$9 = grad($6, wrt=[$4]);"),
      "f:7:1: a gradient by 'unused', which the loss does not depend on; expected values that "
      "it is computed from");
  EXPECT_EQ(error("$9 @name(\"g\") = grad($6, wrt=[$3]);"),
            "f:7:1: notes on a result of grad; expected none");
  EXPECT_EQ(
      error("$9 = grad($6, wrt=[$3]); $10 = sum_to($9, [1, 1]); $11 = grad($10, wrt=[$3]);"),
      "f:7:63: a loss '$10' that depends on a gradient; expected a loss that depends on none");
}

}  // namespace
}  // namespace arenite::graph
