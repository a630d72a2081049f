// examples/llama2.arenite, token after token, without the heap. What it computes, llama2_test.py
// compares with NumPy.
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/heap_calls.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/heap_counted.hpp"

namespace arenite {
namespace {

std::string script() {
  const std::ifstream file(ARENITE_EXAMPLES "/llama2.arenite");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The script's model with random weights.
class Decoder {
 public:
  Decoder() {
    const graph::Graph graph = graph::parse(script(), operators());
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::deque<std::vector<float>> weights;
    std::deque<std::vector<std::int64_t>> indices;
    std::vector<NamedBytes> constants;
    for (const graph::ValueId id : graph.declared(graph::StorageClass::constant)) {
      const graph::Value& value = graph[id];
      const auto count = static_cast<std::size_t>(value.shape.elements());
      const std::int64_t bytes = graph::byte_size(value.type, value.shape);
      if (value.type == DType::int64) {
        auto& counted = indices.emplace_back(count);
        std::iota(counted.begin(), counted.end(), 0);
        constants.push_back({value.name, counted.data(), bytes});
      } else {
        for (float& weight : weights.emplace_back(count)) weight = uniform(random);
        constants.push_back({value.name, weights.back().data(), bytes});
      }
    }
    model_ = std::make_unique<Model>(session_, graph, constants);
    logits_.resize(static_cast<std::size_t>(model_->outputs().at(0).shape.elements()));
  }

  const std::vector<float>& step(std::int64_t token, std::int64_t position) {
    const std::array<NamedBytes, 2> inputs{{{"token", &token, 8}, {"position", &position, 8}}};
    void* const place = logits_.data();
    model_->evaluate(inputs, {&place, 1});
    return logits_;
  }

 private:
  runtime::Session session_{{.workers = 1}};
  std::unique_ptr<Model> model_;
  std::vector<float> logits_;
};

TEST(Llama2Script, AllocatesNothingAfterTheFirstToken) {
  constexpr std::int64_t positions = 64, tokens = 256;
  Decoder decoder;
  decoder.step(1, 0);
  ASSERT_EQ(runtime::heap_calls().has_value(), testing::heap_counted) << "run this through ctest";
  const runtime::Counters before = runtime::counters();
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  bool finite = true;
  for (std::int64_t step = 1; step < 4 * positions; ++step) {
    for (const float logit : decoder.step(step % tokens, step % positions))
      finite = finite && std::isfinite(logit);
  }
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  EXPECT_EQ(runtime::map_calls().value_or(0) - maps, 0);
  EXPECT_EQ(runtime::counters().handles, before.handles);
  EXPECT_EQ(runtime::counters().tasks, before.tasks);
  EXPECT_TRUE(finite);
}

}  // namespace
}  // namespace arenite
