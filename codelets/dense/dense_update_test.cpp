#include "codelets/dense/reference.hpp"
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

struct Update {
  std::vector<std::int64_t> lanes;
  std::int64_t inputs, outputs;
  std::vector<std::int64_t> rows;
  double momentum, decay;
  bool tree = false;
};

/// dense_grad_weight_sgd on every kernel, for a few steps, against double.
void check_update(OpHarness& h, const Update& u, const std::string& tag) {
  SCOPED_TRACE("I=" + std::to_string(u.inputs) + " O=" + std::to_string(u.outputs) + " lanes of " +
               std::to_string(u.lanes.front()));
  const std::int64_t begin = u.rows.empty() ? 0 : u.rows[0],
                     end = u.rows.empty() ? u.inputs : u.rows[1];
  const Shape shape{end - begin, u.outputs};
  const auto w = h.random("w" + tag, shape), v = h.random("v" + tag, shape),
             rate = h.random("rate" + tag, {1}, 0.1f, 0.2f);
  std::vector<ValueId> operands{w, rate, u.momentum != 0 ? v : ValueId{}};
  std::vector<double> gradient(static_cast<std::size_t>(shape.elements()));
  for (std::size_t lane = 0; lane < u.lanes.size(); ++lane) {
    const std::int64_t n = u.lanes[lane];
    const std::string of = tag + "lane" + std::to_string(lane);
    const auto x = h.random("x" + of, {n, u.inputs}), g = h.random("g" + of, {n, u.outputs});
    operands.insert(operands.end(), {x, g});
    const auto one = reference(transposed(as_doubles(h.read<float>(x)), n, u.inputs),
                               as_doubles(h.read<float>(g)), {}, {u.inputs, n, u.outputs});
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] += one[static_cast<std::size_t>(begin * u.outputs) + i];
  }
  const auto first_weight = h.read<float>(w), first_velocity = h.read<float>(v);
  auto weight = as_doubles(first_weight), velocity = as_doubles(first_velocity);
  const double learning_rate = static_cast<double>(h.read<float>(rate).front());
  constexpr int steps = 3;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      double g = gradient[i] + u.decay * weight[i];
      if (u.momentum != 0) g = velocity[i] = u.momentum * velocity[i] + g;
      weight[i] -= learning_rate * g;
    }
  }
  const graph::Attributes attributes{{"momentum", u.momentum},
                                     {"weight_decay", u.decay},
                                     {"rows", u.rows},
                                     {"tree", std::int64_t{u.tree}}};
  h.op("dense_grad_weight_sgd", operands, attributes);
  const auto names = h.cpu_kernels();
  EXPECT_EQ(names.back(), "plain");
  for (const std::string& kernel : names) {
    h.write(w, first_weight);
    h.write(v, first_velocity);
    for (int step = 0; step < steps; ++step) ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    expect_close(h.read<float>(w), weight, 4e-6, kernel);
    if (u.momentum != 0) expect_close(h.read<float>(v), velocity, 4e-6, kernel);
  }
  // Versions that lie elsewhere have the same bits, and leave the old ones alone.
  h.write(w, first_weight);
  h.write(v, first_velocity);
  for (const std::string& kernel : names) {
    h.op("dense_grad_weight_sgd", operands, attributes);
    h.run(kernel);
    const auto in_place = h.read<float>(w), moved = h.read<float>(v);
    h.write(w, first_weight);
    h.write(v, first_velocity);
    h.updates_in_place = false;
    const auto made = h.op("dense_grad_weight_sgd", operands, attributes);
    h.updates_in_place = true;
    h.run(kernel);
    EXPECT_EQ(h.read<float>(made[0]), in_place) << kernel;
    if (u.momentum != 0) {
      EXPECT_EQ(h.read<float>(made[1]), moved) << kernel;
    }
    EXPECT_EQ(h.read<float>(w), first_weight) << kernel;
    EXPECT_EQ(h.read<float>(v), first_velocity) << kernel;
  }
}

TEST(DenseUpdate, MatchesTheReference) {
  OpHarness h(31);
  int number = 0;
  for (const Update& u : {Update{{5, 5}, 400, 120, {}, 0.9, 0},
                          {{5, 5}, 120, 84, {}, 0.9, 0.01},
                          {{10}, 676, 10, {}, 0.9, 0},
                          {{1}, 1, 1, {}, 0, 0},
                          {{1}, 7, 17, {}, 0, 0.1},
                          {{16, 16, 16, 16}, 200, 128, {64, 192}, 0.9, 0},
                          {{32, 31}, 130, 70, {128, 130}, 0.5, 0.1},
                          {{64, 64}, 70, 65, {}, 0.9, 0},
                          {{0, 3}, 5, 33, {}, 0.9, 0}})
    check_update(h, u, "n" + std::to_string(number++));
  std::uniform_int_distribution<int> samples(1, 20), lanes(1, 3), features(1, 150), chance(0, 1);
  for (int i = 0; i < 40; ++i) {
    Update u{{}, features(h.engine()), features(h.engine()), {}, 0, 0};
    for (int lane = lanes(h.engine()); lane > 0; --lane) u.lanes.push_back(samples(h.engine()));
    if (chance(h.engine()) != 0) u.momentum = 0.9;
    if (chance(h.engine()) != 0) u.decay = 0.01;
    if (chance(h.engine()) != 0) u.rows = {u.inputs / 3, u.inputs};
    u.tree = chance(h.engine()) != 0;
    check_update(h, u, std::to_string(i));
  }
}

/// Of shards: the bits of the products one by one, and `sum`, whatever the kernel.
TEST(DenseUpdate, AddsATreeWithTheBitsOfItsSums) {
  OpHarness h(43);
  std::uniform_int_distribution<int> features(1, 150), samples(1, 12);
  int number = 0;
  for (const std::size_t shards : {2u, 3u, 4u, 5u, 8u, 13u}) {
    const std::int64_t inputs = features(h.engine()), outputs = features(h.engine());
    std::vector<ValueId> pairs, products;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const std::string of = "t" + std::to_string(number++);
      const std::int64_t n = samples(h.engine());
      pairs.push_back(h.random("x" + of, {n, inputs}));
      pairs.push_back(h.random("g" + of, {n, outputs}));
    }
    const graph::Attributes tree{{"tree", std::int64_t{1}}};
    h.op("dense_grad_weight", pairs, tree);
    for (const std::string& kernel : h.cpu_kernels()) {
      const auto made = h.op("dense_grad_weight", pairs, tree).front();
      h.run(kernel);
      const auto found = h.read<float>(made);
      std::vector<ValueId> terms;
      for (std::size_t shard = 0; shard < shards; ++shard) {
        terms.push_back(
            h.op("dense_grad_weight", {pairs[2 * shard], pairs[2 * shard + 1]}).front());
        h.run(kernel);
      }
      const auto sum = h.op("sum", terms).front();
      h.run("tiles");
      EXPECT_EQ(found, h.read<float>(sum)) << kernel << ", " << shards << " shards";
    }
  }
}

/// And of their update by itself.
TEST(DenseUpdate, UpdatesATreeWithTheBitsOfItsSums) {
  OpHarness h(47);
  const std::int64_t inputs = 130, outputs = 70;
  const auto w = h.random("w", {inputs, outputs}), v = h.random("v", {inputs, outputs}),
             rate = h.random("rate", {1}, 0.1f, 0.2f);
  const auto weight = h.read<float>(w), velocity = h.read<float>(v);
  std::vector<ValueId> operands{w, rate, v}, products;
  for (const std::int64_t samples : {5, 4, 4, 3}) {
    const std::string of = std::to_string(samples) + std::to_string(operands.size());
    const auto x = h.random("x" + of, {samples, inputs}),
               g = h.random("g" + of, {samples, outputs});
    operands.insert(operands.end(), {x, g});
    products.push_back(h.op("dense_grad_weight", {x, g}).front());
    h.run("xsmm");
  }
  const auto sum = h.op("sum", products).front();
  h.run("tiles");
  h.op("sgd", {w, sum, rate, v}, {{"momentum", 0.9}});
  h.run("fused");
  const auto expected = h.read<float>(w), moved = h.read<float>(v);
  const graph::Attributes tree{{"momentum", 0.9}, {"tree", std::int64_t{1}}};
  h.op("dense_grad_weight_sgd", operands, tree);
  for (const std::string& kernel : h.cpu_kernels()) {
    if (kernel == "plain") continue;  // whose products are rounded otherwise
    h.write(w, weight), h.write(v, velocity);
    h.op("dense_grad_weight_sgd", operands, tree);
    h.run(kernel);
    EXPECT_EQ(h.read<float>(w), expected) << kernel;
    EXPECT_EQ(h.read<float>(v), moved) << kernel;
  }
}

TEST(DenseUpdate, GivesSomeRowsWithTheBitsOfAll) {
  OpHarness h(37);
  const std::int64_t inputs = 200, outputs = 70;
  const auto w = h.random("w", {inputs, outputs}), v = h.random("v", {inputs, outputs}),
             rate = h.random("rate", {1}), x = h.random("x", {9, inputs}),
             g = h.random("g", {9, outputs});
  const auto weight = h.read<float>(w), velocity = h.read<float>(v);
  h.op("dense_grad_weight_sgd", {w, rate, v, x, g}, {{"momentum", 0.9}});
  for (const std::string& kernel : h.cpu_kernels()) {
    h.write(w, weight), h.write(v, velocity);
    h.op("dense_grad_weight_sgd", {w, rate, v, x, g}, {{"momentum", 0.9}});
    h.run(kernel);
    const auto whole = h.read<float>(w);
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 64}, {64, 200}}) {
      const auto from = begin * outputs, to = end * outputs;
      const std::string tag = kernel + std::to_string(begin);
      const auto part = h.random("w" + tag, {end - begin, outputs}),
                 state = h.random("v" + tag, {end - begin, outputs});
      h.write<float>(part, {weight.begin() + from, weight.begin() + to});
      h.write<float>(state, {velocity.begin() + from, velocity.begin() + to});
      h.op("dense_grad_weight_sgd", {part, rate, state, x, g},
           {{"momentum", 0.9}, {"rows", std::vector<std::int64_t>{begin, end}}});
      h.run(kernel);
      EXPECT_EQ(h.read<float>(part), std::vector<float>(whole.begin() + from, whole.begin() + to))
          << kernel << " " << begin;
    }
  }
}

TEST(DenseUpdate, KeepsInfiniteWeightsWithoutDecay) {
  OpHarness h;
  const auto w = h.random("w", {2, 20}), rate = h.random("rate", {1}), x = h.random("x", {3, 2}),
             g = h.random("g", {3, 20});
  auto weight = h.read<float>(w);
  weight[21] = std::numeric_limits<float>::infinity();
  h.op("dense_grad_weight_sgd", {w, rate, ValueId{}, x, g});
  for (const std::string& kernel : h.cpu_kernels()) {
    h.write(w, weight);
    h.run(kernel);
    const auto after = h.read<float>(w);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(std::isinf(after[i]), i == 21);
  }
}

}  // namespace
}  // namespace arenite::codelets::testing
