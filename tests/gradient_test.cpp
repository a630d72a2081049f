// Whole networks: a training step's gradients, computed in double from the graph that the trainer
// runs, against central differences of the loss; then the step itself, on its fast kernels, against
// those gradients.
//
// The loss is that of the layers as they were written, before any pass: what fusion, lanes, the
// gradient rules and the order of updates make of them has to have the same slope.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/train/compiled_step.hpp"
#include "tests/reference/differences.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>

namespace arenite {
namespace {

using graph::ValueId;
using reference::Direction;
using reference::Evaluator;
using reference::Rules;

using Gradients = std::map<std::string, std::vector<double>>;  // by parameter

struct Case {
  const char* model;
  Shape image;
  std::int64_t entries;     ///< of a parameter's, compared one by one
  std::int64_t batch;       ///< samples of the loss that is differentiated
  std::int64_t fast_batch;  ///< samples of the step that is run on fast kernels
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.model; }

/// A model with random weights, and one random batch.
class Network {
 public:
  Network(const Case& what, std::int64_t batch, unsigned seed)
      : layers_(nn::model(what.model).layers), image_(what.image), batch_(batch) {
    build();
    forward_.emplace(graph_);
    draw(seed);
  }

  Network(const Network&) = delete;  // the evaluator looks at the graph
  Network& operator=(const Network&) = delete;

  const std::vector<ValueId>& parameters() const { return parameters_; }
  const std::string& name(ValueId id) const { return graph_[id].name; }
  Evaluator& forward() { return *forward_; }
  double loss() { return (*forward_)[loss_][0]; }

  /// The gradients of the step that the trainer would run with so many lanes, each op by its
  /// reference rule.
  Gradients gradients(int lanes, const Rules& rules = reference::rules()) {
    const graph::Graph step = training_graph(lanes);
    Evaluator evaluator(step, rules);
    evaluator["images"].data.assign(images_.begin(), images_.end());
    evaluator["labels"].data.assign(labels_.begin(), labels_.end());
    std::iota(evaluator["order"].data.begin(), evaluator["order"].data.end(), 0.0);
    evaluator["learning_rate"][0] = 1;
    for (const ValueId p : parameters_) evaluator[name(p)].data = (*forward_)[p].data;
    evaluator.run();
    evaluator.keep();
    // With a learning rate of 1 a gradient is what the weight lost.
    Gradients all;
    for (const ValueId p : parameters_) {
      std::vector<double>& lost = all[name(p)] = (*forward_)[p].data;
      for (std::size_t i = 0; i < lost.size(); ++i) lost[i] -= evaluator[name(p)].data[i];
    }
    EXPECT_NEAR(evaluator["statistics"][0] / static_cast<double>(batch_), loss(),
                1e-12 * std::max(1.0, loss()));
    return all;
  }

  /// Lanes keep parts of weights wherever they can.
  graph::Graph training_graph(int lanes) const {
    plan::StateLayout state;
    graph::TargetProfile target = graph::default_target();
    target.meeting_microseconds = 0;
    return train::compile_step(layers_, nn::cross_entropy(), optim::sgd({.lr = 1}),
                               {.name = "step",
                                .batch = batch_,
                                .dataset = batch_,
                                .image = image_,
                                .how = {.lanes = lanes, .target = target}},
                               &state)
        .spec.graph;
  }

  /// The same, by training one step with the kernels that `select` takes.
  Gradients trained(int lanes) {
    // A power of two: the weights take up the gradients' bits, and little of their own is left.
    constexpr float rate = 1024;
    runtime::Session session({.workers = 2});
    train::Trainer trainer(
        session, layers_, image_,
        {.batch = batch_, .optimizer = optim::sgd({.lr = rate}), .lanes = lanes});
    const data::Split split{.images = images_,
                            .labels = labels_,
                            .count = batch_,
                            .height = image_[0],
                            .width = image_[1],
                            .channels = image_[2],
                            .classes = 10};
    trainer.prepare(&split, nullptr);
    for (const auto& p : trainer.parameters()) std::ranges::copy(weights(p.name), p.values.begin());
    trainer.fit(split, {.epochs = 1, .shuffle = false});
    Gradients all;
    for (const auto& p : trainer.parameters()) {
      all[p.name] = weights(p.name);
      for (std::size_t i = 0; i < p.values.size(); ++i)
        all[p.name][i] = (all[p.name][i] - static_cast<double>(p.values[i])) / rate;
    }
    return all;
  }

  /// Pixels, labels and weights anew: so wide (K. He et al., "Delving deep into rectifiers", 2015)
  /// that values are of order 1 at any depth, and few near a kink.
  void draw(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> byte(0, 255), label(0, 9);
    for (auto& v : images_) v = static_cast<std::uint8_t>(byte(random));
    for (auto& v : labels_) v = static_cast<std::uint8_t>(label(random));
    std::ranges::transform(images_, (*forward_)[x_].data.begin(), [](int v) { return v / 255.0; });
    std::ranges::copy(labels_, (*forward_)[y_].data.begin());
    std::int64_t fan_in = 1;
    for (const ValueId p : parameters_) {
      const Shape& shape = graph_[p].shape;
      if (shape.rank() > 1) fan_in = shape.elements() / shape[shape.rank() - 1];
      const float range = std::sqrt(6 / static_cast<float>(fan_in));
      std::uniform_real_distribution<float> uniform(-range, range);
      for (double& v : (*forward_)[p].data) v = static_cast<double>(uniform(random));
    }
    forward_->run();
  }

 private:
  void build() {
    graph::Builder builder(graph_, operators());
    x_ = builder.declare("x", DType::float32, {batch_, image_[0], image_[1], image_[2]},
                         graph::StorageClass::input);
    y_ = builder.declare("y", DType::int32, {batch_}, graph::StorageClass::input);
    nn::ModelBuilder model(builder);
    loss_ = nn::cross_entropy()(model, layers_(model, x_), y_, batch_).value;
    parameters_ = graph_.declared(graph::StorageClass::parameter);
    images_.resize(static_cast<std::size_t>(batch_ * image_.elements()));
    labels_.resize(static_cast<std::size_t>(batch_));
  }

  const std::vector<double>& weights(const std::string& name) { return (*forward_)[name].data; }

  nn::Layer layers_;
  Shape image_;
  std::int64_t batch_;
  graph::Graph graph_;
  ValueId x_, y_, loss_;
  std::vector<ValueId> parameters_;
  std::vector<std::uint8_t> images_, labels_;
  std::optional<Evaluator> forward_;
};

/// Central differences keep h² of the loss' third derivative, which is of order 1, and the loss'
/// rounding, some 1e-15, over h: at this h both are below 1e-9. Measured, the worst is 2e-8 of a
/// parameter's largest gradient. The tolerance leaves room for other machines' rounding and none
/// for a wrong term.
constexpr double h = 2e-6;
/// For all of a parameter's elements at once: they move everything behind them further.
constexpr double h_all = 1e-7;
constexpr double tolerance = 1e-6;
constexpr double fast_tolerance = 1e-4;

struct Slope {
  std::string parameter;
  Direction direction;
  double value;
};

struct Slopes {
  std::vector<Slope> all;
  std::int64_t kinks = 0;  ///< directions in which a kink was too near
};

/// `count` of the numbers below `n`, each once; all of them where there are no more.
std::vector<std::int64_t> sample(std::int64_t n, std::int64_t count, std::mt19937& random) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n)), some;
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sample(all, std::back_inserter(some), count, random);
  return some;
}

/// The loss' slope for single elements of each parameter, and for all of them together, each up or
/// down at random: an error anywhere shows there.
Slopes slopes(Network& network, std::int64_t entries, unsigned seed) {
  std::mt19937 random(seed);
  Slopes found;
  const auto measure = [&](ValueId p, Direction direction, double step) {
    const auto slope =
        central_difference(network.forward(), p, direction, step, [&] { return network.loss(); });
    if (slope) found.all.push_back({network.name(p), std::move(direction), *slope});
    return slope.has_value();
  };
  for (const ValueId p : network.parameters()) {
    const auto size = static_cast<std::int64_t>(network.forward()[p].size());
    for (std::int64_t i : sample(size, entries, random)) {
      if (!measure(p, {{i, 1.0}}, h)) ++found.kinks;
    }
    bool together = false;
    for (int attempt = 0; attempt < 20 && !together; ++attempt) {
      Direction signs;
      for (std::int64_t i = 0; i < size; ++i) signs.emplace_back(i, random() % 2 == 0 ? 1.0 : -1.0);
      together = measure(p, std::move(signs), h_all);
    }
    EXPECT_TRUE(together) << "no direction without a kink for all of " << network.name(p);
    network.forward().rerun(p);  // as it was, for the next parameter
  }
  return found;
}

/// The largest disagreement of a parameter, and which.
std::pair<double, std::string> worst(const Slopes& slopes, const Gradients& gradients) {
  std::pair<double, std::string> found{0, "none"};
  for (const Slope& slope : slopes.all) {
    const auto& gradient = gradients.at(slope.parameter);
    const double far = reference::disagreement(slope.value, slope.direction, gradient);
    if (far <= found.first) continue;
    std::ostringstream text;
    text << slope.parameter << ": slope " << slope.value;
    if (slope.direction.size() == 1) {
      const auto i = slope.direction.front().first;
      text << " of element " << i << ", gradient " << gradient.at(static_cast<std::size_t>(i));
    } else {
      text << " of all elements";
    }
    found = {far, text.str()};
  }
  return found;
}

class NetworkGradients : public ::testing::TestWithParam<Case> {};

TEST_P(NetworkGradients, AgreeWithCentralDifferences) {
  Network network(GetParam(), GetParam().batch, 11);
  const Slopes found = slopes(network, GetParam().entries, 12);
  for (int lanes : {1, 3}) {  // a lane without a sample is absent
    const auto [far, where] = worst(found, network.gradients(lanes));
    EXPECT_LE(far, tolerance) << lanes << " lanes, " << where;
    RecordProperty("worst_" + std::to_string(lanes), std::to_string(far * 1e9) + "e-9");
  }
  EXPECT_LE(found.kinks, static_cast<std::int64_t>(found.all.size() / 20));
  RecordProperty("slopes", static_cast<int>(found.all.size()));
  RecordProperty("kinks", static_cast<int>(found.kinks));
}

TEST_P(NetworkGradients, FastKernelsAgreeWithTheReference) {
  for (int lanes : {1, 2}) {
    // Rounding to float32, in whatever order kernels add, must not carry any ReLU or window across
    // its kink: the two would rightly differ by a whole term then.
    unsigned seed = 1000 * static_cast<unsigned>(lanes);
    Network network(GetParam(), GetParam().fast_batch, seed);
    while (network.forward().decisions().margin < 1e-6) {
      ASSERT_LT(++seed % 1000, 999u) << "every batch is near a kink";
      network.draw(seed);
    }
    const Gradients expected = network.gradients(lanes), actual = network.trained(lanes);
    for (const auto& [name, gradient] : expected) {
      const auto& found = actual.at(name);
      double largest = 0, far = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        largest = std::max(largest, std::fabs(gradient[i]));
        ASSERT_TRUE(std::isfinite(found.at(i))) << name << " at " << i;
        far = std::max(far, std::fabs(found[i] - gradient[i]));
      }
      EXPECT_GT(largest, 0) << name;
      EXPECT_LE(far, fast_tolerance * largest) << name << " with " << lanes << " lanes";
      RecordProperty("far_" + name + std::to_string(lanes),
                     std::to_string(far / largest * 1e6) + "e-6");
    }
  }
}

/// In double, and under sanitizers without the machine's vectors, the larger two take minutes.
std::vector<Case> cases() {
  std::vector<Case> all{{"cnn1", {28, 28, 1}, 300, 3, 16}, {"lenet5", {28, 28, 1}, 200, 3, 16}};
  if (ARENITE_PLAIN_KERNELS) return all;
  all.push_back({"cnn2", {28, 28, 1}, 80, 3, 8});
  all.push_back({"vgg-small", {32, 32, 3}, 1, 2, 2});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, NetworkGradients, ::testing::ValuesIn(cases()),
                         [](const auto& one) {
                           std::string name = one.param.model;
                           std::erase(name, '-');  // which a test's name cannot have
                           return name;
                         });

TEST(Reference, AWrongBackwardOpIsCaught) {
  Network network({"cnn1", {28, 28, 1}, 50, 3, 1}, 3, 21);
  const Slopes found = slopes(network, 50, 22);
  ASSERT_LE(worst(found, network.gradients(1)).first, tolerance);
  const graph::Graph step = network.training_graph(1);
  int broken = 0;
  for (std::size_t i = 0; i < step.op_count(); ++i) {
    const graph::Op& op = step[graph::OpId(i)];
    if (op.phase != Phase::backward) continue;
    // One element of a result, the largest, is a hundredth too large.
    Rules rules = reference::rules();
    rules[std::string(op.name())] = [right =
                                         rules.at(std::string(op.name()))](reference::Call& call) {
      right(call);
      auto& data = call.out(0).data;
      *std::ranges::max_element(data, {}, [](double v) { return std::fabs(v); }) *= 1.01;
    };
    EXPECT_GT(worst(found, network.gradients(1, rules)).first, 10 * tolerance) << op.name();
    ++broken;
  }
  EXPECT_GE(broken, 4);
}

struct Sliced : ::testing::Test {
  graph::Graph graph;
  graph::Builder builder{graph, operators()};

  ValueId declare(const std::string& name, std::int64_t rows) {
    return builder.declare(name, DType::float32, {rows}, graph::StorageClass::buffer);
  }
  ValueId slice(ValueId x, std::int64_t begin, std::int64_t end) {
    return builder.add1("slice", {x}, {{"begin", begin}, {"end", end}});
  }
};

TEST_F(Sliced, VersionsOfSlicesAreKeptWhereTheyBelong) {
  const ValueId x = declare("x", 5), one = declare("one", 2), seen = declare("seen", 4);
  const ValueId most = slice(x, 1, 5), inner = slice(most, 1, 3);
  const ValueId more = builder.add1("accumulate", {inner, one}),
                after = builder.add1("relu", {more});
  builder.add("accumulate", {builder.add1("accumulate", {seen, most}), most});
  Evaluator evaluator(graph);
  evaluator["x"].data = {1, 2, 3, 4, 5};
  evaluator["one"].data = {10, 20};
  evaluator.run();
  using Doubles = std::vector<double>;
  EXPECT_EQ(evaluator["x"].data, (Doubles{1, 2, 3, 4, 5}));
  EXPECT_EQ(evaluator[after].data, (Doubles{13, 24}));
  evaluator.keep();
  EXPECT_EQ(evaluator["x"].data, (Doubles{1, 2, 13, 24, 5}));
  EXPECT_EQ(evaluator["seen"].data, (Doubles{4, 6, 8, 10}));
  evaluator["one"].data = {1, 1};
  evaluator.rerun(one);
  EXPECT_EQ(evaluator[after].data, (Doubles{4, 5}));  // of what it was before
  evaluator.run();
  EXPECT_EQ(evaluator[after].data, (Doubles{14, 25}));
}

TEST(Reference, RefusesAnOperatorWithoutARule) {
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  builder.context.where = "layer";
  const auto x = builder.declare("x", DType::float32, {2}, graph::StorageClass::input);
  builder.add("relu", {x});
  EXPECT_ERROR("operator 'relu' without a reference rule",
               const Evaluator evaluator(graph, Rules{}));
}

}  // namespace
}  // namespace arenite
