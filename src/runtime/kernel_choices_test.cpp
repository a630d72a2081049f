#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/kernel_choices.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace arenite::runtime {
namespace {

using graph::StorageClass;
using graph::ValueId;

struct KernelChoicesTest : ::testing::Test {
  graph::Graph graph;
  graph::OpId conv;
  std::filesystem::path file = std::filesystem::temp_directory_path() /
                               ("kernel_choices_test." + std::to_string(getpid()) + ".json");

  void SetUp() override { build(8); }
  void TearDown() override { std::filesystem::remove(file); }

  void build(std::int64_t batch) {
    graph = {};
    graph::Builder builder(graph, operators());
    const ValueId x = builder.declare("x", DType::float32, {batch, 28, 28, 3}, StorageClass::input);
    const ValueId w = builder.declare("w", DType::float32, {3, 3, 3, 16}, StorageClass::parameter);
    const ValueId y =
        builder.add1("conv2d", {x, w, {}}, {{"padding", std::vector<std::int64_t>{1, 1}}});
    graph.outputs.push_back(y);
    conv = graph[y].producer;
  }
  graph::OpView op() const { return {graph, graph[conv]}; }

  std::string kernel_of(const KernelChoices& choices) const {
    try {
      return kernel_selector(kernels(), {.choices = choices})->choose(op());
    } catch (const Error& error) {
      return error.what();
    }
  }
  KernelChoices chosen(const std::string& kernel) const {
    KernelChoices choices;
    choices.set(op(), DeviceKind::cpu, Compute::float32, kernel);
    return choices;
  }
  std::string refusal(const std::string& text) const {
    std::ofstream(file) << text;
    try {
      KernelChoices::read(file);
    } catch (const Error& error) {
      std::string why = error.what();
      for (std::size_t at; (at = why.find(file.string())) != std::string::npos;)
        why.replace(at, file.string().size(), "FILE");
      return why;
    }
    return "accepted";
  }
};

TEST_F(KernelChoicesTest, AreOfAnOpsShapesAndAttributes) {
  EXPECT_EQ(KernelChoices::describe(op()),
            "conv2d(float32 [8, 28, 28, 3], float32 [3, 3, 3, 16], _, dilation=[1, 1], "
            "padding=[1, 1], stride=[1, 1])");
}

TEST_F(KernelChoicesTest, ComeBeforeTheTablesOrder) {
  if (ARENITE_PLAIN_KERNELS) GTEST_SKIP() << "this build has no other kernel";
  const std::string own = kernel_of({});
  ASSERT_NE(own, "plain");
  EXPECT_EQ(kernel_of(chosen("plain")), "plain");
  KernelChoices elsewhere;
  elsewhere.set(op(), DeviceKind::cuda, Compute::float32, "plain");
  elsewhere.set(op(), DeviceKind::cpu, Compute::bfloat16, "plain");
  EXPECT_EQ(kernel_of(elsewhere), own);
  const KernelChoices smaller = chosen("plain");
  build(16);
  EXPECT_EQ(kernel_of(smaller), own);
}

TEST_F(KernelChoicesTest, ArePassedOverWhereTheOpCannotHaveThem) {
  const std::string own = kernel_of({});
  ASSERT_FALSE(kernel_selector(kernels())->supports(op(), "winograd"));
  EXPECT_EQ(kernel_of(chosen("winograd")), own);
}

/// A choice that an op cannot have is told once, before the table's order.
TEST_F(KernelChoicesTest, ComeFirstAmongTheRefused) {
  KernelTable table;
  const auto add = [&](Kernel kernel) {
    kernel.prepare = [](const graph::OpView&) { return PreparedKernel(); };
    table.add("conv2d", std::move(kernel));
  };
  add({.name = "fast",
       .supports = [](const graph::OpView&) -> graph::Support { return "it is not"; }});
  add({.name = "measured", .only_chosen = true});
  add({.name = "odd",
       .supports = [](const graph::OpView&) -> graph::Support { return "an even batch"; }});
  add({.name = "plain"});
  const auto refused = [&](const KernelWishes& wishes) {
    std::string all;
    for (const auto& [kernel, why] : kernel_selector(table, wishes)->refused(op()))
      all += kernel + ": " + std::string(why) + "\n";
    return all;
  };
  EXPECT_EQ(refused({}),
            "fast: it is not\nmeasured: only where a measurement chose it\nodd: an even batch\n");
  EXPECT_EQ(refused({.choices = chosen("odd")}),
            "odd: an even batch\nfast: it is not\nmeasured: only where a measurement chose it\n");
  EXPECT_EQ(refused({.choices = chosen("measured")}), "");
  EXPECT_EQ(refused({.without = "measured", .choices = chosen("measured")}),
            "measured: left out, as was asked for\nfast: it is not\nodd: an even batch\n");
}

TEST_F(KernelChoicesTest, MustBeKernelsOfTheTable) {
  chosen("quick").write(file);
  EXPECT_EQ(kernel_of(KernelChoices::read(file)),
            file.string() + ": kernel 'quick' chosen for " + KernelChoices::describe(op()) +
                "; expected one of this build's kernels (hint: measure anew: these choices are of "
                "another version, or of one with other libraries)");
}

/// Its passes ask twice: before halos are agreed on, and behind.
TEST_F(KernelChoicesTest, GoThroughTheSelection) {
  graph::select(graph, *kernel_selector(kernels(), {.choices = chosen("plain")}));
  EXPECT_EQ(graph[conv].kernel, "plain");
}

TEST_F(KernelChoicesTest, KnowHowManyWereTaken) {
  const KernelChoices plain = chosen("plain");
  EXPECT_EQ(plain.taken_by(graph, Compute::float32), 0U);  // no kernels are selected yet
  graph::select(graph, *kernel_selector(kernels(), {.choices = plain}));
  EXPECT_EQ(plain.taken_by(graph, Compute::float32), 1U);
  EXPECT_EQ(chosen("winograd").taken_by(graph, Compute::float32), 0U);
  KernelChoices rounded;
  rounded.set(op(), DeviceKind::cpu, Compute::bfloat16, "plain");
  EXPECT_EQ(rounded.taken_by(graph, Compute::float32), 0U);
  build(16);
  graph::select(graph, *kernel_selector(kernels(), {.choices = plain}));
  EXPECT_EQ(plain.taken_by(graph, Compute::float32), 0U);
}

TEST_F(KernelChoicesTest, AreReadAsTheyWereWritten) {
  KernelChoices choices = chosen("plain");
  choices.set(op(), DeviceKind::cuda, Compute::tfloat32, "cudnn");
  choices.measured_on = "a \"GPU\"";
  choices.write(file);
  const KernelChoices read = KernelChoices::read(file);
  EXPECT_EQ(read.measured_on, choices.measured_on);
  EXPECT_EQ(read.origin(), file.string());
  EXPECT_EQ(*read.find(op(), DeviceKind::cpu, Compute::float32), "plain");
  EXPECT_EQ(*read.find(op(), DeviceKind::cuda, Compute::tfloat32), "cudnn");
  EXPECT_EQ(read.find(op(), DeviceKind::cuda, Compute::float32), nullptr);
}

TEST_F(KernelChoicesTest, SayWhatIsWrongWithAFile) {
  const std::string head =
      R"({"format": "arenite kernel choices 1", "measured_on": "", "choices": )";
  const auto entry = [](const std::string& device, const std::string& compute) {
    return R"-({"op": "relu(float32 [1])", "device": ")-" + device + R"-(", "compute": ")-" +
           compute + R"-(", "kernel": "plain"})-";
  };
  const std::string good = entry("cpu", "float32");
  EXPECT_EQ(refusal(head + "[" + good + "]}"), "accepted");
  EXPECT_EQ(refusal(head + "[" + good + ", " + good + "]}"),
            "FILE, choices[1]: a second kernel for 'relu(float32 [1])'; expected one");
  EXPECT_EQ(refusal(head + "[" + entry("gpu", "float32") + "]}"),
            "FILE, choices[0].device: 'gpu'; expected cpu or cuda");
  EXPECT_EQ(refusal(head + "[" + entry("cpu", "half") + "]}"),
            "FILE, choices[0].compute: 'half'; expected float32, bfloat16 or tfloat32");
  EXPECT_EQ(refusal(head + "7}"), "FILE, choices: 7; expected an array");
  EXPECT_EQ(refusal(R"({"format": "arenite plan 1"})"),
            "FILE, format: 'arenite plan 1'; expected 'arenite kernel choices 1'");
  EXPECT_EQ(refusal("{").find("FILE, byte 1: parse error"), 0U) << refusal("{");
  std::filesystem::remove(file);
  EXPECT_THROW(KernelChoices::read(file), Error);
}

}  // namespace
}  // namespace arenite::runtime
