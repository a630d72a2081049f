#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/random_graph.hpp"
#include "src/graph/random_regions.hpp"
#include "tests/random_block_network.hpp"

namespace arenite::graph {
namespace {

using testing::table;

bool never(OpId, std::vector<ValueId>&, Builder&) { return false; }

void expect_copied(const Graph& graph, const OperatorTable& operators, const std::string& which) {
  std::string why;
  EXPECT_TRUE(equal(graph, rebuild(graph, operators, never), &why)) << which << ": " << why << "\n"
                                                                    << print(graph);
}

TEST(Rebuild, CopiesEveryNote) {
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(300U); ++seed) {
    Graph graph = testing::RandomGraph(seed).make();
    // As before `select` and `in_place`.
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      graph[OpId(i)].kernel.clear();
      graph[OpId(i)].workspace = {};
    }
    for (std::size_t i = 0; i < graph.storage_count(); ++i)
      graph.storage(StorageId(i)).merged_into = {};
    expect_copied(graph, table(), "seed " + std::to_string(seed));
  }
}

TEST(Rebuild, CopiesBlocksInBlocks) {
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(300U); ++seed)
    expect_copied(testing::RandomRegions(seed).make(), table(), "seed " + std::to_string(seed));
  for (unsigned seed = 0; seed < 60; ++seed) {
    const arenite::testing::RandomNetwork network(seed);  // its gradients read partial results
    expect_copied(network.graph, operators(), "network " + std::to_string(seed));
  }
}

TEST(Rebuild, CopiesNotesInBlocks) {
  const std::string script = R"($1 = InputTensor(c, int64, [1]);
$2 = InputTensor(x, float32, [64]);
$3 = loop(_, $1, $2, max_trips=4) @lane(2) @where("cell") ($4 @name("n"), $5 @bytes(512)) {
  $6 @class(output) @storage("kept") = relu($5) @lane(1) @where("inner");
  $7, $8 = if($1) @backward @lane(2) {
    $9 = slice($6, begin=0, end=32) @backward @lane(2);
    $10 @offset(64) = relu($9) @backward;
    yield _, $10;
  } else {
    yield $6, _;
  }
  yield $1, $6;
}
result = $3;
)";
  const Graph graph = parse(script, table());
  EXPECT_EQ(print(rebuild(graph, table(), never)), print(graph));
  expect_copied(graph, table(), script);
}

TEST(Rebuild, ReplacesInBlocks) {
  const Graph graph = parse(R"($1 = InputTensor(c, int64, [1]); $2 = InputTensor(x, float32, [64]);
    $3 = if($1) { $4 = relu($2); $5 = loop($1, _, $4, max_trips=3) ($6, $7) {
                    $8 = relu($7); yield $8; } yield $5; } else { yield $2; }
    result = $3;)",
                            table());
  const Graph made = rebuild(graph, table(), [&](OpId id, auto& map, Builder& builder) {
    if (graph[id].name() != "relu") return false;
    map[graph[id].results[0].index] = builder.add1("scale", {map[graph[id].operands[0].index]});
    return true;
  });
  const Graph expected = parse(R"($1 = InputTensor(c, int64, [1]);
    $2 = InputTensor(x, float32, [64]);
    $3 = if($1) { $4 = scale($2); $5 = loop($1, _, $4, max_trips=3) ($6, $7) {
                    $8 = scale($7); yield $8; } yield $5; } else { yield $2; }
    result = $3;)",
                               table());
  std::string why;
  EXPECT_TRUE(equal(made, expected, &why)) << why;
}

struct ReadersOf : ::testing::Test {
  // $3: twice in a block; $4: yielded by one in its own block; $6, $9: within one block.
  const Graph graph = parse(R"($1 = InputTensor(c, int64, [1]); $2 = InputTensor(x, float32, [64]);
    $3 = relu($2) @where("a"); $4 = relu($2) @where("b");
    $5 = if($1) @where("outer") {
      $6 = add($3, $2) @where("d");
      $7 = if($1) @where("inner") { $8 = relu($3); yield $8; } else { yield $4; }
      $9 = relu($6) @where("e");
      yield $9;
    } else { yield $4; }
    $10 = relu($5) @where("f");
    result = $10;)",
                            table());
  const Readers readers{graph};

  OpId op(const std::string& where) const {
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      if (graph[OpId(i)].where == where) return OpId(i);
    }
    return {};
  }
  std::string list(const std::string& where) const {
    std::string text;
    for (const auto& [reader, in_block] : readers.of(graph[op(where)].results[0]))
      text += (text.empty() ? "" : " ") + graph[reader].where + (in_block ? "*" : "");
    return text;
  }
  std::string only(const std::string& where, const std::string& reader) const {
    const Obstacle why = readers.only_for(graph[op(where)].results[0], op(reader));
    return why ? in_words(graph, why) : "";
  }
};

TEST_F(ReadersOf, CountBlocksAsTheirHolders) {
  EXPECT_EQ(list("a"), "outer* outer*");
  EXPECT_EQ(list("b"), "outer* outer*");
  EXPECT_EQ(list("d"), "e");
  EXPECT_EQ(list("outer"), "f");
  EXPECT_EQ(list("inner"), "");
}

TEST_F(ReadersOf, SayWhoElseSeesAValue) {
  EXPECT_EQ(only("d", "e"), "");
  EXPECT_EQ(only("outer", "f"), "");
  EXPECT_EQ(only("a", "outer"), "the result of relu 'a' is read in a block of if 'outer'");
  EXPECT_EQ(only("outer", "e"), "the result of if 'outer' is read by relu 'f' too");
  EXPECT_EQ(only("e", "f"), "the result of relu 'e' is what its block yields");
  EXPECT_EQ(only("f", "f"), "the result of relu 'f' is an output");
}

TEST(Readers, FindWhoeverRenewsWhatIsRead) {
  const Graph graph = parse(R"($1 = InputTensor(c, int64, [1]); $2 = BufferTensor(w, float32, [64]);
    $3 = InputTensor(x, float32, [64]);
    $4 = relu($2); $8 = accumulate($2, $3); $5 = relu($4);
    if($1) { $6 = relu($2); yield; } else { yield; }
    result = $5;)",
                            table());
  const Readers readers(graph);
  const auto& ops = graph[Graph::body].ops;
  EXPECT_EQ(readers.renewer(ops[0], ops[0], ops[2]), ops[1]);
  EXPECT_FALSE(readers.renewer(ops[2], ops[0], ops[2]));
  EXPECT_FALSE(readers.renewer(ops[0], ops[0], ops[2], std::vector{ops[1]}));
  // The holder of a block reads what its block reads.
  EXPECT_EQ(readers.renewer(ops[3], ops[0], ops[3]), ops[1]);
}

}  // namespace
}  // namespace arenite::graph
