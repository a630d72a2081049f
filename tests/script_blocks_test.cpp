// A script of nested blocks as a model runs it, on every path, against the reference evaluator. A
// checked build poisons whatever a path has not written.
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/script_pair.hpp"

namespace arenite {
namespace {

using testing::Pair;

const std::string declarations = R"(
  $1 = InputTensor(outer, int64, [1]);
  $2 = InputTensor(inner, int64, [1]);
  $3 = InputTensor(trips, int64, [1]);
  $4 = InputTensor(x, float32, [1, 64]);
  $5 = InputTensor(begin, int64, [1]);
  $6 = BufferTensor(state, float32, [4, 64]);
  $7 = silu($4);
)";

/// Captures values from outside, an `if` in it, and a loop that carries two values past another.
const std::string large_side = R"(
  $100 = broadcast_to($7, [256, 64]);
  $101 = if($2) {
    $102 = relu($100);
    $103 = mul($102, $7);
    yield $103;
  } else {
    $104 = add($100, $4);
    yield $104;
  }
  $105, $106 = loop($3, _, $101, $7, max_trips=5) ($107, $108, $109) {
    $110 = add($108, $109);
    $111 = if($2) {
      $112 = silu($110);
      yield $112;
    } else {
      yield $108;
    }
    $113 = add($109, $4);
    yield $111, $113;
  }
  $114 = sum_to($105, [1, 64]);
  $115 = add($114, $106);
)";

const std::string small_side = R"(
  $200 = broadcast_to($4, [192, 64]);
  $201 = loop($3, $2, $200, max_trips=5) ($202, $203) {
    $204 = if($202) {
      $205 = add($203, $7);
      yield $205;
    } else {
      $206 = relu($203);
      $207 = mul($206, $7);
      yield $207;
    }
    yield $3, $204;
  }
  $208 = sum_to($201, [1, 64]);
)";

const std::string buffer = R"(
  $301 = replace_slice($6, $300, $5);
  $302 = sum_to($301, [1, 64]);
  result = $302, $300, $301;
)";

std::int64_t arenas(runtime::Session& session, const std::string& script) {
  return Model(session, graph::parse(script, operators()), {}).plan().transient_bytes();
}

TEST(ScriptBlocks, RunOnEveryPath) {
  const runtime::Session session({.workers = 1});
  Pair pair(declarations + "$300 = if($1) {" + large_side + "yield $115; } else {" + small_side +
                "yield $208; }" + buffer,
            1);
  // Behind the blocks the buffer is written in place.
  EXPECT_TRUE(pair.model().copies().empty());
  std::mt19937 random(1);
  struct Path {
    std::int64_t outer, inner, trips;
  };
  std::vector<Path> paths;
  for (const std::int64_t outer : {0, 1, -3}) {
    for (const std::int64_t inner : {0, 7}) {
      for (const std::int64_t trips : {-1, 0, 1, 2, 5, 9}) paths.push_back({outer, inner, trips});
    }
  }
  for (int round = 0; round < 3; ++round) {
    std::ranges::shuffle(paths, random);
    for (const Path& path : paths) {
      pair.set("outer", path.outer);
      pair.set("inner", path.inner);
      pair.set("trips", path.trips);
      pair.set("begin", static_cast<std::int64_t>(random() % 4));
      ASSERT_LT(pair.difference(), 1e-5)
          << path.outer << ", " << path.inner << ", " << path.trips << " in round " << round;
    }
  }
}

TEST(ScriptBlocks, SidesShareTheirBytes) {
  runtime::Session session({.workers = 1});
  const std::string rest = buffer;
  const auto alone = [&](const std::string& side, const std::string& result) {
    return arenas(session, declarations + side + "$300 = reshape(" + result + ", [1, 64]);" + rest);
  };
  const std::int64_t large = alone(large_side, "$115"), small = alone(small_side, "$208"),
                     both = arenas(session, declarations + "$300 = if($1) {" + large_side +
                                                "yield $115; } else {" + small_side +
                                                "yield $208; }" + rest);
  EXPECT_LT(both, large + small);
  // Little more than the larger one alone.
  EXPECT_LT(both, large + small / 4);
  EXPECT_GE(both, std::max(large, small) - 4096);
}

}  // namespace
}  // namespace arenite
