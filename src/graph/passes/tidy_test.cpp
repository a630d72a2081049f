#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::graph {
namespace {

using List = std::vector<std::string>;

struct Tidy : ::testing::Test {
  Graph graph;
  Remarks remarks;
  int count = 0;

  /// Also that it becomes the same without remarks, and that nothing is left to do.
  void run(const std::string& script) {
    graph = parse(R"($1 = InputTensor(x, float32, [4, 6]); $2 = ParameterTensor(w, float32, [6, 6]);
                     $3 = InputTensor(c, int64, [1]); $4 = BufferTensor(s, float32, [4, 6]);)" +
                      script,
                  operators());
    Graph untold = graph;
    count = tidy(graph, operators(), &remarks);
    tidy(untold, operators());
    EXPECT_TRUE(equal(graph, untold));
    EXPECT_EQ(tidy(untold, operators()), 0);
    EXPECT_TRUE(equal(graph, untold));
  }

  /// Ops with those in blocks, and of each what it reads: declared values by name, others as "#"
  /// and which op makes them.
  List ops() const {
    const std::vector<OpId> all = nested_ops(graph);
    List list;
    for (OpId id : all) {
      std::string text(graph[id].name());
      for (ValueId operand : graph[id].operands) text += " " + read(all, operand);
      list.push_back(text);
    }
    return list;
  }
  std::string read(const std::vector<OpId>& all, ValueId id) const {
    if (!id) return "_";
    const Value& value = graph[id];
    if (!value.producer) return value.name;
    return "#" + std::to_string(std::ranges::find(all, value.producer) - all.begin());
  }
  std::string output(std::size_t i = 0) const { return read(nested_ops(graph), graph.outputs[i]); }

  /// "f(g($9), x=1)" as "$10 = g($9); $99 = f($10, x=1);".
  static std::string statements(std::string nested) {
    std::string before;
    for (int next = 10;; ++next) {
      const std::size_t close = nested.find(')'), open = nested.rfind('(', close);
      std::size_t begin = open;
      while (begin > 0 && (std::isalnum(nested[begin - 1]) != 0 || nested[begin - 1] == '_'))
        --begin;
      const std::string name = "$" + std::to_string(begin == 0 ? 99 : next);
      before += name + " = " + nested.substr(begin, close + 1 - begin) + "; ";
      if (begin == 0) return before;
      nested.replace(begin, close + 1 - begin, name);
    }
  }

  static List list(const std::vector<Remarks::Remark>& remarks) {
    List all;
    for (const auto& [what, why] : remarks) all.push_back(what + ": " + why);
    return all;
  }
};

TEST_F(Tidy, DropsWhatNobodyNeeds) {
  run(R"($5 = relu($1) @where("r1"); $6 = silu($5) @where("s"); $7 = add($6, $5) @where("a");
         $8 = permute($5, dims=[1, 0]) @where("p"); result = $5;)");
  EXPECT_EQ(ops(), List{"relu x"});
  EXPECT_EQ(count, 3);
  EXPECT_EQ(list(remarks.done), (List{"silu 's': nobody needs it", "add 'a': nobody needs it",
                                      "permute 'p': nobody needs it"}));
  EXPECT_EQ(list(remarks.left), List{});
  EXPECT_TRUE(graph.find("w"));  // declared values stay
}

TEST_F(Tidy, KeepsWhatWritesAndWhatItNeeds) {
  run(R"($5 = relu($1); accumulate($4, $5); $6 = silu($1); result = _;)");
  EXPECT_EQ(ops(), (List{"relu x", "accumulate s #0"}));
}

TEST_F(Tidy, KeepsNewVersionsOfBuffers) {
  run(R"($5 = full(shape=[1], type="int64"); $6 = replace_slice($4, $1, $5) @where("v");
         $7 = replace_slice($1, $1, $3) @where("r"); result = _;)");
  EXPECT_EQ(ops(), (List{"full", "replace_slice s x #0", "replace_slice x x c"}));
  EXPECT_EQ(count, 0);
  // The second one is no version; it may find that its begin is wrong.
  EXPECT_EQ(list(remarks.left),
            List{"replace_slice 'r': nobody reads it, but it may find a fault in what it reads"});
}

TEST_F(Tidy, KeepsWhatTheLossNeeds) {
  run(R"($5 = InputTensor(labels, int32, [4]); $6 = matmul($1, $2); $7 = silu($6);
         $8, $9, $10 = softmax_cross_entropy($6, $5); train($8, optimizer=sgd, learning_rate=1, parameters=[$2]); result = _;)");
  EXPECT_EQ(ops(), (List{"matmul x w", "softmax_cross_entropy #0 labels"}));
  ASSERT_TRUE(graph.training);
  EXPECT_EQ(graph[graph.training->loss].producer, OpId(1));
}

TEST_F(Tidy, DropsBlocksAndTheirResults) {
  run(R"($5, $6 = if($3) @where("i") { $7 = relu($1) @where("r"); $8 = silu($1); yield $7, $8; }
                  else { $9 = silu($1); yield $1, $9; }
         $10 = if($3) @where("j") { yield $1; } else { yield $5; } result = $6;)");
  EXPECT_EQ(ops(), (List{"if c", "silu x", "silu x"}));
  EXPECT_EQ(graph[graph[Graph::body].ops[0]].results.size(), 1u);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(list(remarks.done), (List{"if 'i': 1 result less", "relu 'r': nobody needs it",
                                      "if 'j': nobody needs it"}));
}

TEST_F(Tidy, DropsWhatLoopsCarryForNobody) {
  // The second value is read for the first one, the third only for itself.
  run(R"($5, $6, $7 = loop(_, _, $1, $1, $1, max_trips=3) ($8, $9, $10, $11) {
           $12 = add($9, $10); $13 = relu($10); $14 = silu($11); yield $12, $13, $14; }
         result = $5;)");
  EXPECT_EQ(ops(), (List{"loop _ _ x x", "add loop.carried loop.carried1", "relu loop.carried1"}));
  EXPECT_EQ(count, 2);
}

TEST_F(Tidy, KeepsALoopThatMakesANewVersion) {
  run(R"($5, $6 = loop(_, _, $1, $1, max_trips=3) ($8, $9, $10) {
           accumulate($4, $1); $11 = relu($9); yield $11, $10; } result = $1;)");
  EXPECT_EQ(ops(), (List{"loop _ _ s", "accumulate loop.carried2 x", "assign s #0"}));
}

TEST_F(Tidy, DoesEqualOpsOnce) {
  run(R"($5 = relu($1) @where("a"); $6 = relu($1) @where("b"); $7 = silu($5); $8 = silu($6);
         $9 = add($7, $8); result = $9;)");
  EXPECT_EQ(ops(), (List{"relu x", "silu #0", "add #1 #1"}));
  EXPECT_EQ(list(remarks.done), (List{"relu 'b': is relu 'a'", "silu #3: is silu #2"}));
}

TEST_F(Tidy, TellsApartAttributesLanesAndPhases) {
  run(R"($5 = full(shape=[4, 6], value=0.0); $6 = full(shape=[4, 6], value=-0.0);
         $7 = relu($1) @lane(0); $8 = relu($1) @lane(1); $9 = relu($1) @backward;
         result = $5, $6, $7, $8, $9;)");
  EXPECT_EQ(count, 0);
}

TEST_F(Tidy, TellsVersionsApart) {
  run(R"($5 = relu($4); $6 = relu($4); accumulate($4, $1); $7 = relu($4); $8 = relu($4);
         result = $5, $6, $7, $8;)");
  EXPECT_EQ(ops(), (List{"relu s", "accumulate s x", "relu #1"}));
  EXPECT_EQ(output(0) + output(1) + output(2) + output(3), "#0#0#2#2");
}

TEST_F(Tidy, SeesTheVersionsThatALoopMakes) {
  run(R"($5 = relu($4); $6 = loop(_, _, $1, max_trips=3) ($7, $8) {
           $9 = relu($4); $10 = add($8, $9); accumulate($4, $8); yield $10; }
         result = $5, $6;)");
  EXPECT_EQ(ops(), (List{"relu s", "loop _ _ x s", "relu loop.carried1", "add loop.carried #2",
                         "accumulate loop.carried1 loop.carried", "assign s #1"}));
}

TEST_F(Tidy, LooksOutOfBlocksAndNotIntoThem) {
  run(R"($5 = relu($1); $6 = if($3) { $7 = relu($1); $8 = silu($7); yield $8; }
                                else { $9 = silu($1); yield $9; }
         $10 = silu($1); $11 = silu($5); result = $6, $10, $11;)");
  EXPECT_EQ(ops(), (List{"relu x", "if c", "silu #0", "silu x", "silu x", "silu #0"}));
}

TEST_F(Tidy, LeavesEqualBlocks) {
  run(R"($5 = if($3) @where("i") { $6 = relu($1); yield $6; } else { yield $1; }
         $7 = if($3) @where("j") { $8 = relu($1); yield $8; } else { yield $1; }
         result = $5, $7;)");
  EXPECT_EQ(count, 0);
  EXPECT_EQ(list(remarks.left), List{"if 'j': its blocks are not compared with those of if 'i'"});
}

TEST_F(Tidy, MakesLargeConstantsAnew) {
  run(R"($5 = full(shape=[4, 6], value=2) @where("a"); $6 = silu($5); $7 = add($1, $6);
         $8 = full(shape=[4, 6], value=2) @where("b"); $9 = silu($8); $10 = add($7, $9);
         $11 = full(shape=[4, 6], value=2) @where("c"); $12 = mul($10, $11); result = $12;)");
  // What reads them is equal, though.
  EXPECT_EQ(ops(), (List{"full", "silu #0", "add x #1", "add #2 #1", "full", "mul #3 #4"}));
  EXPECT_EQ(
      list(remarks.left).back(),
      "full 'c': full 'a' makes the same, but to keep it takes bytes that to make it anew does "
      "not");
}

TEST_F(Tidy, PermutesBecomeATransposedFactor) {
  run(R"($5 = permute($1, dims=[1, 0]) @where("p1"); $6 = permute($5, dims=[1, 0]) @where("p2");
         $7 = permute($6, dims=[1, 0]) @where("p3"); $8 = matmul($7, $1) @where("m"); result = $8;)");
  EXPECT_EQ(ops(), List{"matmul x x"});
  EXPECT_EQ(graph[OpId(0)].attributes.integer("transpose_a"), 1);
  EXPECT_EQ(list(remarks.done),
            (List{"permute 'p1': nobody needs it", "permute 'p2': is 'x'",
                  "permute 'p3': is permute 'p1'", "matmul 'm': matmul of 'x', 'x'"}));
}

TEST_F(Tidy, AChainThatComesBackIsItsBeginning) {
  run(R"($5 = reshape($1, shape=[24]); $6 = reshape($5, shape=[6, 4]); $7 = reshape($6, shape=[4, 6]);
         $8 = slice($7, begin=0, end=4); $9 = sum($8); $10 = relu($9); $11 = relu($10); $12 = identity($11);
         result = $12;)");
  EXPECT_EQ(ops(), List{"relu x"});
}

TEST_F(Tidy, CopiesWhatChangesInAStep) {
  run(R"($5 = identity($4) @where("i"); $6 = full(shape=[1], type="int64");
         $7 = slice($1, begin=0, end=1); $8 = replace_slice($4, $7, $6);
         $9 = relu($5); result = $9;)");
  EXPECT_EQ(ops(), (List{"identity s", "full", "slice x", "replace_slice s #2 #1", "relu #0"}));
  EXPECT_EQ(list(remarks.left), List{"identity 'i': 's' may change in a step"});
}

TEST_F(Tidy, ReadsACopyThatWasMadeBeforeAWrite) {
  run(R"($5 = permute($4, dims=[1, 0]) @where("p"); accumulate($4, $1);
         $6 = permute($5, dims=[1, 0]) @where("q"); result = $6;)");
  EXPECT_EQ(ops(), (List{"permute s", "accumulate s x", "permute #0"}));
}

TEST_F(Tidy, TakesNoVersionForAConstant) {
  run(R"($5 = full(shape=[4, 6], value=1); $6 = full(shape=[4, 6], value=1); accumulate($5, $1);
         $7 = mul($1, $5); $8 = add($5, $6); $9 = relu($6); result = $7, $8, $9;)");
  EXPECT_EQ(ops(), (List{"full", "full", "accumulate #0 x", "mul x #2", "add #2 #1", "full"}));
}

TEST_F(Tidy, CopiesWhatIsToBeRenewed) {
  run(R"($5 = identity($1) @where("i"); accumulate($5, $1); $6 = silu($1); $7 = silu($1);
         accumulate($7, $1); result = $5, $6, $7;)");
  EXPECT_EQ(ops(), (List{"identity x", "accumulate #0 x", "silu x", "accumulate #2 x"}));
  EXPECT_EQ(list(remarks.left),
            List{"identity 'i': there is a new version of the result of identity 'i'"});
}

TEST_F(Tidy, GivesCallersAValueOfTheStepUnderItsName) {
  run(R"($5 = relu($1) @where("r"); $6 = identity($5) @where("logits"); $7 = identity($1); result = $6, $7;)");
  EXPECT_EQ(ops(), (List{"relu x", "identity x"}));
  EXPECT_EQ(graph[graph.outputs[0]].name, "logits");
  EXPECT_EQ(graph.root_storage(graph.outputs[0]).name, "logits");
}

TEST_F(Tidy, LeavesWhatWasPlacedByHand) {
  run(R"($5 @class(output) = identity($1); $6 @class(gradient) = relu($1); $7 = relu($1); result = $5, $6, $7;)");
  EXPECT_EQ(count, 0);
}

TEST_F(Tidy, FoldsConstants) {
  run(R"($5 = full(shape=[4, 1], value=2); $6 = broadcast_to($5, shape=[4, 6]);
         $7 = full(shape=[1, 6], value=0.5); $8 = mul($6, $7); $9 = mul($1, $8); result = $9;)");
  EXPECT_EQ(ops(), (List{"full", "mul x #0"}));
  EXPECT_EQ(graph[OpId(0)].attributes.real("value"), 1);
}

TEST_F(Tidy, KnowsWhatOpsAreAsWell) {
  const std::vector<std::pair<std::string, List>> rules{
      {"identity($9)", {}},
      {"reshape($9, shape=[4, 6])", {}},
      {"flatten($9)", {}},
      {"reshape(flatten(reshape($9, shape=[2, 2, 6])), shape=[24])", {"reshape #0"}},
      {"slice($9, begin=0, end=4)", {}},
      {"slice(slice($9, begin=1, end=4), begin=1, end=2)", {"slice #0"}},
      {"permute($9, dims=[0, 1])", {}},
      {"permute(reshape($9, shape=[1, 24]), dims=[1, 0])", {"reshape #0"}},
      {"permute(permute(reshape($9, shape=[4, 2, 3]), dims=[1, 2, 0]), dims=[2, 1, 0])",
       {"reshape #0", "permute #1"}},
      {"relu($9)", {}},
      {"sum($9)", {}},
      {"stack_columns($9)", {}},
      {"join_columns($9, rows=[0, 4])", {}},
      {"join_columns($9, rows=[0, 3])", {"join_columns #0"}},
      {"broadcast_to($9, shape=[4, 6])", {}},
      {"broadcast_to(broadcast_to(reshape($9, shape=[4, 1, 6]), shape=[4, 2, 6]), shape=[4, 2, 6])",
       {"reshape #0", "broadcast_to #1"}},
      {"slice_grad($9, begin=0, rows=4)", {}},
      {"relu(permute(full(shape=[2, 3], value=-1), dims=[1, 0]))", {"full"}},
      {"add(full(shape=[2], value=1), full(shape=[1], value=2))", {"full"}},
      {"replace_slice($1, $9, full(shape=[1], type=\"int64\"))", {}},
      {"dynamic_slice($9, full(shape=[1], value=2, type=\"int64\"), rows=2)", {"slice #0"}},
      {"index_sum(index_sum($3, offset=2))", {"index_sum c"}},
      {"index_sum(full(shape=[1], value=2, type=\"int64\"), $3, offset=3)",
       {"full", "index_sum #1 c"}},
      // A parameter is updated though its gradient is 0.
      {"replace_slice($2, permute($2, dims=[1, 0]), full(shape=[1], type=\"int64\"))",
       {"permute w", "full", "replace_slice w #1 #2"}},
      // What flushes numbers, or the sign of 0, is not the same.
      {"add($9, full(shape=[4, 6]))", {"full", "add #0 #1"}},
      {"mul($9, full(shape=[4, 6], value=1))", {"full", "mul #0 #1"}},
      {"sum_to($9, shape=[4, 6])", {"sum_to #0"}},
      {"dynamic_slice($9, full(shape=[1], value=3, type=\"int64\"), rows=2)",
       {"full", "dynamic_slice #0 #1"}},
      {"add(full(shape=[2], value=1e-40), full(shape=[2], value=1e-40))",
       {"full", "full", "add #1 #2"}},
  };
  for (const auto& [op, expected] : rules) {
    SCOPED_TRACE(op);
    run("$9 = relu($1);" + statements(op) + "result = $9, $99;");
    List all = ops();
    ASSERT_EQ(all.front(), "relu x");
    all.erase(all.begin());
    EXPECT_EQ(all, expected);
  }
}

TEST_F(Tidy, RowsFromAKnownBeginAreAView) {
  run(R"($5 = full(shape=[1], value=1, type="int64"); $6 = index_sum($5, $5, scale=2, offset=-1);
         $7 = dynamic_slice($1, $6, rows=2); $8 = dynamic_slice($1, $6, rows=3) @where("beyond");
         $9 = relu($7); result = $9;)");
  EXPECT_EQ(ops(), (List{"full", "slice x", "dynamic_slice x #0", "relu #1"}));
}

}  // namespace
}  // namespace arenite::graph
