#include <arenite/graph/liveness.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>

#include <gtest/gtest.h>

#include <map>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

/// Of the last op of the body, by storage name: "first-last" for each span. Its first result is
/// needed afterwards.
std::map<std::string, std::string> spans(const std::string& script, std::size_t* steps = nullptr) {
  const Graph graph = parse(
      "$1 = InputTensor(c, int64, [1]);\n"
      "$2 = InputTensor(x, float32, [64]);\n" +
          script,
      testing::table());
  const OpId op = graph[Graph::body].ops.back();
  std::vector<bool> needed(graph.storage_count());
  needed[graph.root(graph[op].results[0]).index] = true;
  const OpLiveness all = liveness(graph, op, needed);
  if (steps != nullptr) *steps = all.steps;
  std::map<std::string, std::string> result;
  for (const LiveSpan& span : all.spans) {
    std::string& text = result[graph.storage(span.storage).name];
    text +=
        (text.empty() ? "" : " ") + std::to_string(span.first) + "-" + std::to_string(span.last);
  }
  return result;
}

using Spans = std::map<std::string, std::string>;

TEST(Liveness, OfAPlainOpIsOneStep) {
  std::size_t steps = 0;
  EXPECT_EQ(spans("$3 @name(y) = relu($2); result = $3;", &steps),
            (Spans{{"x", "0-0"}, {"y", "0-0"}}));
  EXPECT_EQ(steps, 1u);
}

TEST(Liveness, BlocksOfAnIfAreDifferentSteps) {
  std::size_t steps = 0;
  EXPECT_EQ(spans(R"($3 @name(r) = if($1) {          # 0
                       $4 @name(t) = relu($2);       # 1
                       $5 @name(u) = relu($4);       # 2
                       yield $5;                     # 3
                     } else {
                       $6 @name(v) = relu($2);       # 4
                       $7 @name(w) = relu($6);       # 5
                       yield $7;                     # 6
                     }                               # 7
                     result = $3;)",
                  &steps),
            (Spans{{"c", "0-0"},
                   {"x", "0-1 4-4"},
                   {"t", "1-2"},
                   {"u", "2-3"},
                   {"v", "4-5"},
                   {"w", "5-6"},
                   {"r", "3-3 6-7"}}));
  EXPECT_EQ(steps, 8u);
}

TEST(Liveness, APartialResultIsDeadInTheOtherBlock) {
  const Spans all = spans(R"($3 @name(r), $8 @name(s) = if($1) {  # 0
                       $4 @name(t) = relu($2);                 # 1
                       yield $4, _;                            # 2
                     } else {
                       $6 @name(v) = relu($2);                 # 3
                       yield _, $6;                            # 4
                     }                                         # 5
                     result = _;)");
  EXPECT_EQ(all.at("r"), "2-2 5-5");
}

TEST(Liveness, LoopsKeepWhatTheNextTripFinds) {
  EXPECT_EQ(spans(R"($3 @name(h) = relu($2);
                     $4 @name(r) = loop($1, _, $2, max_trips=3) ($5 @name(i), $6 @name(p)) {  # 0
                       $7 @name(t) = add($6, $3);    # 1: h is from outside
                       $8 @name(u) = relu($7);       # 2
                       yield $8;                     # 3
                     }                               # 4
                     result = $4;)"),
            (Spans{{"c", "0-0"},
                   {"x", "0-0"},
                   {"h", "0-3"},
                   {"i", "0-0 3-3"},  // nobody reads the number of the trip
                   {"p", "0-1 3-4"},  // dead between its reader and its successor
                   {"t", "1-2"},
                   {"u", "2-3"},
                   {"r", "4-4"}}));
}

TEST(Liveness, InnerLoopsKeepWhatTheOuterTripMakes) {
  const Spans all =
      spans(R"($4 @name(r) = loop($1, _, $2, max_trips=3) ($5, $6 @name(p)) {            # 0
                 $7 @name(t) = relu($6);                                         # 1
                 $8 @name(s) = loop($1, _, $7, max_trips=3) ($9, $10 @name(q)) { # 2
                   $11 @name(u) = add($10, $7);                                  # 3
                   yield $11;                                                    # 4
                 }                                                               # 5
                 $12 @name(v) = relu($8);                                        # 6
                 yield $12;                                                      # 7
               }                                                                 # 8
               result = $4;)");
  EXPECT_EQ(all.at("p"), "0-1 7-8");
  EXPECT_EQ(all.at("t"), "1-4");
  EXPECT_EQ(all.at("q"), "2-5");
  EXPECT_EQ(all.at("u"), "3-4");
  EXPECT_EQ(all.at("s"), "5-6");
  EXPECT_EQ(all.at("v"), "6-7");
  EXPECT_EQ(all.at("c"), "0-7");  // the trips of the inner loop, for the next outer trip
}

}  // namespace
}  // namespace arenite::graph
