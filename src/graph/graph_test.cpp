#include <arenite/graph/graph.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

using testing::error_of;

StorageId add_storage(Graph& graph, const std::string& name, std::int64_t bytes, Space space = {}) {
  return graph.add_storage({.name = name, .space = space, .bytes = bytes});
}

TEST(Graph, StartsWithABody) {
  const Graph graph;
  EXPECT_EQ(graph.region_count(), 1u);
  EXPECT_TRUE(graph[Graph::body].ops.empty());
  EXPECT_FALSE(graph.find("x"));
}

TEST(Graph, MergesFollowToTheRoot) {
  Graph graph;
  const StorageId a = add_storage(graph, "a", 64), b = add_storage(graph, "b", 64),
                  c = add_storage(graph, "c", 32);
  graph.merge(c, b);
  graph.merge(b, a);
  EXPECT_EQ(graph.root(c), a);
  EXPECT_EQ(graph.root(a), a);
  graph.merge(a, c);  // the same bytes already: no circle
  EXPECT_EQ(graph.root(a), a);
  const ValueId value = graph.add_value({.name = "v", .shape = {8}, .storage = c});
  EXPECT_EQ(graph.root(value), a);
  EXPECT_EQ(graph.root_storage(value).name, "a");
}

TEST(Graph, MergesOnlyWhatFits) {
  Graph graph;
  const StorageId a = add_storage(graph, "a", 64), b = add_storage(graph, "b", 32),
                  gpu = add_storage(graph, "gpu", 64,
                                    {.device = DeviceKind::cuda, .memory = MemoryKind::device});
  EXPECT_EQ(error_of([&] { graph.merge(a, b); }),
            "storage 'a' (64 bytes, cpu:0/host) merged into 'b' (32 bytes, cpu:0/host); expected a "
            "target of the same "
            "space and at least the same size");
  EXPECT_EQ(error_of([&] { graph.merge(gpu, a); }),
            "storage 'gpu' (64 bytes, cuda:0/device) merged into 'a' (64 bytes, cpu:0/host); "
            "expected a target of the "
            "same space and at least the same size");
}

TEST(Graph, FindsDeclaredValuesOnly) {
  Graph graph;
  Builder builder(graph, testing::table());
  const ValueId x = builder.declare("x", DType::float32, {2}, StorageClass::input);
  const ValueId w = builder.declare("w", DType::float32, {2}, StorageClass::parameter);
  builder.add("relu", {x});
  EXPECT_EQ(graph.find("w"), w);
  EXPECT_FALSE(graph.find("relu"));
  EXPECT_EQ(graph.declared(StorageClass::parameter), std::vector<ValueId>{w});
  EXPECT_TRUE(graph.declared(StorageClass::activation).empty());
}

TEST(Graph, CopiesAreTheirOwn) {
  Graph graph;
  const StorageId a = add_storage(graph, "a", 64);
  Graph copy = graph;
  copy.storage(a).bytes = 1;
  EXPECT_EQ(graph.storage(a).bytes, 64);
}

TEST(ByteSize, CountsTypesAndHalos) {
  EXPECT_EQ(byte_size(DType::float64, {3, 5}), 120);
  EXPECT_EQ(byte_size(DType::uint8, {}), 1);
  EXPECT_EQ(byte_size(DType::float32, {2, 4, 6, 3}, {.halo = 2}), 2 * 8 * 10 * 3 * 4);
  EXPECT_EQ(byte_size(DType::float32, {0, 4, 6, 3}, {.halo = 2}), 0);
  EXPECT_EQ(error_of([] {
              byte_size(DType::float32, {4, 6}, {.halo = 1});
            }),
            "a halo of 1 on a value of shape [4, 6]; expected a halo of at least 0, on NHWC values "
            "of rank 4 only");
  EXPECT_NE(error_of([] { byte_size(DType::float32, {4, 6, 1, 1}, {.halo = -1}); }), "(no error)");
}

TEST(ByteSize, CannotOverflow) {
  const std::int64_t most = std::int64_t{1} << 48;
  EXPECT_EQ(byte_size(DType::float64, {0, most / 2, most / 2, 1}, {.halo = 1 << 20}), 0);
  EXPECT_EQ(error_of([&] {
              Shape({0, most + 1});
            }),
            "dimension 1 is 281474976710657; expected at most 2^48");
  EXPECT_NE(error_of([&] {
              byte_size(DType::float32, {most, 1, 1, 1}, {.halo = 1});
            }),
            "(no error)");
}

TEST(StorageClass, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(StorageClass::workspace); ++i) {
    const auto cls = static_cast<StorageClass>(i);
    EXPECT_EQ(parse_storage_class(to_string(cls)), cls);
    EXPECT_FALSE(is_persistent(cls) && is_transient(cls));
  }
}

TEST(Describe, NamesOpsByOriginOrNumber) {
  Graph graph;
  Builder builder(graph, testing::table());
  const ValueId x = builder.declare("x", DType::float32, {2}, StorageClass::input);
  builder.add("relu", {x});
  builder.context = {.lane = 3, .where = "act1"};
  builder.add("relu", {x});
  EXPECT_EQ(describe(graph, OpId(0)), "relu #0");
  EXPECT_EQ(describe(graph, OpId(1)), "relu 'act1' (lane 3)");
}

TEST(Attributes, KeepNameOrderAndTypes) {
  Attributes attributes{{"stride", std::int64_t{2}}, {"lr", 0.5}, {"mode", std::string("max")}};
  attributes.set("stride", std::int64_t{3});
  EXPECT_EQ(attributes.items().front().first, "lr");
  EXPECT_EQ(attributes.integer("stride"), 3);
  EXPECT_EQ(attributes.real("stride"), 3.0);
  EXPECT_EQ(error_of([&] { attributes.integer("lr"); }),
            "attribute 'lr' is a number; expected an integer");
  EXPECT_EQ(error_of([&] { attributes.integers("pad"); }),
            "no attribute 'pad'; expected a list of integers");
  EXPECT_EQ(to_string(AttributeValue(1.0)), "1.0");
  EXPECT_EQ(to_string(AttributeValue(std::vector<std::int64_t>{1, -2})), "[1, -2]");
}

}  // namespace
}  // namespace arenite::graph
