#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::graph {
namespace {

struct Select : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};

  /// Two relus on an image; "narrow" wants a halo of 1 and writes it.
  struct Kernels final : KernelSelector {
    bool narrow_takes_halos = true, other_takes_halos = false;
    std::int64_t scratch = 0;

    bool has_kernel(const OpView&, const Space&) const override { return true; }
    std::string choose(const OpView& op) const override {
      return supports(op, "narrow") ? "narrow" : "other";
    }
    std::vector<Refusal> refused(const OpView& op) const override {
      if (choose(op) == "narrow") return {{"none", "it takes none"}};
      return {{"none", "it takes none"}, {"narrow", supports(op, "narrow").why()}};
    }
    Support supports(const OpView& op, const std::string& kernel) const override {
      const bool halo = op.operand(0).layout.halo > 0 || op.result(0).layout.halo > 0;
      if (kernel != "narrow" || !halo || narrow_takes_halos) return {};
      return "a halo";
    }
    std::int64_t workspace(const OpView&, const std::string&) const override { return scratch; }
    int wanted_halo(const OpView&, const std::string& kernel, std::size_t) const override {
      return kernel == "narrow" || other_takes_halos ? 1 : -1;
    }
    bool writes_halo(const OpView&, const std::string& kernel) const override {
      return kernel == "narrow" || other_takes_halos;
    }
  } kernels;

  using Said = std::vector<Remarks::Remark>;

  ValueId x = builder.declare("x", DType::float32, {2, 4, 4, 3}, StorageClass::input);
  ValueId h = builder.add1("relu", {x});
  ValueId y = builder.add1("relu", {h});
};

TEST_F(Select, KeepsTheKernelThatAgreedOnTheHalos) {
  select(graph, kernels);
  EXPECT_EQ(graph[h].layout.halo, 1);
  for (OpId id : graph[Graph::body].ops) EXPECT_EQ(graph[id].kernel, "narrow");
}

TEST_F(Select, SaysWhatEachOpGotAndWhatWasPassedOver) {
  Remarks remarks;
  const Graph before = graph;
  select(graph, kernels, &remarks);
  EXPECT_EQ(remarks.done, (Said{{"relu #0", "narrow"}, {"relu #1", "narrow"}}));
  EXPECT_EQ(remarks.left,
            (Said{{"relu #0 by none", "it takes none"}, {"relu #1 by none", "it takes none"}}));

  graph = before;
  kernels.narrow_takes_halos = false;
  kernels.other_takes_halos = true;
  Remarks replaced;
  select(graph, kernels, &replaced);
  EXPECT_EQ(replaced.done, (Said{{"relu #0", "other"}, {"relu #1", "other"}}));
  remarks.left.insert(remarks.left.end(),
                      {{"relu #0 by narrow", "a halo"}, {"relu #1 by narrow", "a halo"}});
  EXPECT_EQ(replaced.left, remarks.left);
}

TEST_F(Select, TakesAnotherKernelOnlyIfItKnowsTheHalos) {
  kernels.narrow_takes_halos = false;
  const Graph before = graph;
  try {
    select(graph, kernels);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("kernel 'other' cannot write the halo of 1"),
              std::string::npos)
        << error.what();
  }
  graph = before;
  kernels.other_takes_halos = true;
  select(graph, kernels);
  EXPECT_EQ(graph[h].layout.halo, 1);
  for (OpId id : graph[Graph::body].ops) EXPECT_EQ(graph[id].kernel, "other");
}

TEST_F(Select, RefusesAWorkspaceBeyondAllMemory) {
  kernels.scratch = (std::int64_t{1} << 48) + 1;
  try {
    select(graph, kernels);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "relu #0: kernel 'narrow' with a workspace of 281474976710657 bytes; expected at "
                 "most 2^48");
  }
}

TEST_F(Select, SeesWhetherGivenKernelsRun) {
  const auto refused = [&] {
    try {
      check_kernels(graph, kernels);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  kernels.scratch = 64;
  select(graph, kernels);
  EXPECT_EQ(refused(), "");
  kernels.scratch = 65;
  EXPECT_EQ(refused(),
            "relu #0: kernel 'narrow' with a workspace of 64 bytes; expected at least 65 (hint: "
            "without notes of kernels all are chosen)");
  kernels.narrow_takes_halos = false;
  EXPECT_EQ(refused(),
            "relu #0: kernel 'narrow' for what it does not take: a halo; expected one that runs it "
            "(hint: without notes of kernels all are chosen)");
  for (OpId id : graph[Graph::body].ops) graph[id].kernel = "other";
  EXPECT_EQ(refused(),
            "relu #0: kernel 'other' cannot write the halo of 1 of 'relu'; expected a kernel that "
            "knows of it, or no halo");
}

}  // namespace
}  // namespace arenite::graph
