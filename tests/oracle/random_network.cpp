// Random networks: whole training steps as the trainer builds them, on a set that the batch does
// not divide, with the remainder's program and an evaluation over the same blocks.
#include <arenite/error.hpp>
#include <arenite/operators.hpp>
#include <arenite/random.hpp>

#include "src/train/compiled_step.hpp"
#include "tests/optimizers.hpp"
#include "tests/oracle/random_program.hpp"

#include <cmath>
#include <cstring>
#include <utility>

namespace arenite::oracle {
namespace {

class RandomNetwork {
 public:
  RandomNetwork(std::uint32_t seed, std::uint32_t data, const std::vector<Space>& spaces)
      : draw_(seed ^ 0x5eed0000u),
        modes_(seed ^ 0x30de5000u),
        data_(~seed + 7919 * data),
        spaces_(spaces) {}

  RandomProgram make() {
    const auto side = [&] { return draw_.of<std::int64_t>({5, 7, 9, 12, 13}); };
    image_ = {side(), side(), draw_.of<std::int64_t>({1, 3})};
    max_pools_ = draw_.chance(60);
    normalises_ = modes_.chance(25);
    per_shard_ = modes_.chance(50);
    add_layers();
    batch_ = draw_.between(2, 7);
    const std::int64_t whole = draw_.between(2, 3), rest = draw_.between(1, batch_ - 1);
    dataset_ = batch_ * whole + rest;
    const float momentum = draw_.of({0.0f, 0.9f}), decay = draw_.of({0.0f, 0.001f});
    optimizer_ = draw_.chance(40)
                     ? optim::sgd({.lr = 0.05f, .momentum = momentum, .weight_decay = decay})
                     : draw_.of(testing::optimizers());
    if (draw_.chance(40)) {
      optimizer_.groups = {{.names = draw_.of({"*.bias", "*.weight", ""}),
                            .most_rank = draw_.of({1, 2, 4}),
                            .rate = draw_.of({0.5, 1.0}),
                            .attributes = {}}};
    }
    if (draw_.chance(40)) {
      optimizer_.averaging = graph::Averaging{.decay = draw_.of({0.0, 0.9}),
                                              .begin = draw_.between(1, 2),
                                              .every = draw_.between(1, 2)};
    }
    request_ = {.dataset = dataset_, .image = image_, .how = {.spaces = spaces_}};
    request_.how.lanes = static_cast<int>(draw_.between(1, 4));
    request_.how.plan.layout = draw_.of({plan::ArenaLayout::overlay, plan::ArenaLayout::two});
    request_.how.fuse = draw_.chance(70);
    request_.how.target = random_target(draw_);
    request_.how.shards = draw_.of({1, 1, 2, 3, 4, 8});
    if (request_.how.shards > 1) request_.how.lanes = draw_.of({1, 1, 2});
    request_.how.at_once = static_cast<int>(draw_.between(1, request_.how.shards));
    if (spaces_.size() > 1) request_.how.at_once = 0;

    const std::size_t train = add("train", batch_, true), remainder = add("train.rest", rest, true);
    for (std::int64_t i = 0; i < whole; ++i) step(train, i * batch_);
    step(remainder, whole * batch_);
    if (draw_.chance(40)) {
      const std::size_t evaluate = add("evaluate", batch_, false),
                        last = add("evaluate.rest", rest, false);
      step(evaluate, 0);
      step(last, whole * batch_);
    }
    step(train, 0);
    if (modes_.chance(25)) update_by_several(whole);
    complete(program_, data(), state_);
    return std::move(program_);
  }

 private:
  // ---- layers ----------------------------------------------------------------------------------

  bool builds(const std::vector<nn::Layer>& layers) const {
    graph::Graph graph;
    graph::Builder builder(graph, operators());
    nn::ModelBuilder model(builder);
    const auto x = builder.declare("x", DType::float32, {1, image_[0], image_[1], image_[2]},
                                   graph::StorageClass::input);
    try {
      return nn::sequential(layers)(model, x).index < graph.value_count();
    } catch (const Error&) {
      return false;
    }
  }

  nn::Extent extent(std::int64_t low, std::int64_t high) {
    return {draw_.between(low, high), draw_.between(low, high)};
  }

  nn::Layer convolution() {
    nn::Conv2dOptions options{.channels = draw_.of<std::int64_t>({1, 3, 4, 6, 16}),
                              .kernel = draw_.chance(40) ? nn::Extent(3) : extent(1, 4),
                              .stride = draw_.chance(70) ? nn::Extent(1) : extent(1, 2),
                              .bias = draw_.chance(80),
                              .init = nn::WeightInit::he};
    if (draw_.chance(50)) options.padding = {draw_.between(0, 2), draw_.between(0, 2)};
    if (draw_.chance(20)) options.dilation = extent(1, 2);
    return nn::conv2d(options);
  }

  nn::Layer pooling() {
    const nn::Extent kernel = draw_.chance(50) ? nn::Extent(2) : extent(1, 3);
    const nn::Extent stride = draw_.chance(60) ? nn::Extent(0) : extent(1, 2);
    if (max_pools_ && draw_.chance(70)) return nn::max_pool2d({.kernel = kernel, .stride = stride});
    return nn::avg_pool2d({.kernel = kernel, .stride = stride});
  }

  /// Of more than one pixel: a last batch may have one sample.
  nn::Layer normalisation() {
    const nn::BatchNormOptions options{
        .momentum = modes_.of({0.1, 0.5}), .affine = modes_.chance(70), .per_shard = per_shard_};
    return [layer = nn::batch_norm(options)](nn::ModelBuilder& model, graph::ValueId x) {
      return model.shape(x)[1] * model.shape(x)[2] > 1 ? layer(model, x) : x;
    };
  }

  void add_layers() {
    std::vector<nn::Layer> layers;
    const auto try_layer = [&](nn::Layer layer) {
      layers.push_back(std::move(layer));
      if (!builds(layers)) layers.pop_back();
    };
    for (std::int64_t i = draw_.between(0, 3); i > 0; --i) {
      const std::size_t before = layers.size();
      try_layer(convolution());
      if (layers.size() > before && normalises_) layers.push_back(normalisation());
      // A ReLU of a ReLU would do nothing, in whatever order.
      if (layers.size() > before && draw_.chance(80)) layers.push_back(nn::relu());
      if (draw_.chance(60)) try_layer(pooling());
    }
    layers.push_back(nn::flatten());
    for (std::int64_t i = draw_.between(0, 2); i > 0; --i) {
      layers.push_back(nn::dense({.features = draw_.of<std::int64_t>({5, 13, 32, 70}),
                                  .bias = draw_.chance(80),
                                  .init = nn::WeightInit::he}));
      if (draw_.chance(70)) layers.push_back(nn::relu());
      if (modes_.chance(40)) layers.push_back(nn::dropout(modes_.of({0.1, 0.5})));
    }
    classes_ = draw_.between(2, 10);
    layers.push_back(nn::dense(classes_));
    layers_ = nn::sequential(layers);
  }

  // ---- programs --------------------------------------------------------------------------------

  std::size_t add(const std::string& name, std::int64_t batch, bool training) {
    request_.name = name;
    request_.batch = batch;
    request_.training = training;
    compile::Compiled made =
        train::compile_step(layers_, nn::cross_entropy(), optimizer_, request_, &state_);
    for (const graph::ValueId id : made.spec.graph.declared(graph::StorageClass::parameter)) {
      const graph::Value& p = made.spec.graph[id];
      if (!program_.state.contains(p.name)) {
        program_.state[p.name] =
            random_bytes(data_, DType::float32, p.shape.elements(), p.first.a, p.first.b);
      }
    }
    program_.state[graph::learning_rate_name] =
        random_bytes(data_, DType::float32, 1, optimizer_.learning_rate, optimizer_.learning_rate);
    for (const graph::ValueId id : made.spec.graph.declared(graph::StorageClass::buffer)) {
      const graph::Value& buffer = made.spec.graph[id];
      if (buffer.name.ends_with(".running_variance") && !program_.state.contains(buffer.name)) {
        program_.state[buffer.name] =
            random_bytes(modes_, DType::float32, buffer.shape.elements(), 0.5, 2);
      }
    }
    position_ = made.position.empty() ? position_ : made.position;
    program_.programs.push_back(std::move(made.spec));
    return program_.programs.size() - 1;
  }

  /// Gradients of some batches that wait for the last one's.
  void update_by_several(std::int64_t whole) {
    const int all = static_cast<int>(modes_.between(2, 5));
    for (int before = 0; before < all; ++before) {
      request_.part = graph::batch_of_update(all, before, before + 1 == all);
      step(add("train.part" + std::to_string(before), batch_, true), before % whole * batch_);
    }
  }

  void step(std::size_t program, std::int64_t cursor) {
    Bytes bytes(sizeof cursor);
    std::memcpy(bytes.data(), &cursor, sizeof cursor);
    NamedBytes inputs{{"cursor", bytes}};
    if (!position_.empty() && program_.programs[program].graph.find(position_)) {
      const auto position = static_cast<std::int64_t>(program_.steps.size()) * batch_;
      std::memcpy(bytes.data(), &position, sizeof position);
      inputs[position_] = bytes;
    }
    program_.steps.push_back({program, std::move(inputs)});
  }

  NamedBytes data() {
    const std::vector<std::int32_t> order = permutation(dataset_, data_.below(1000), 0);
    const std::span<const std::byte> shuffled = std::as_bytes(std::span(order));
    return {{"images", random_bytes(data_, DType::uint8, dataset_ * image_.elements(), 0, 255)},
            {"labels",
             random_bytes(data_, DType::uint8, dataset_, 0, static_cast<double>(classes_ - 1))},
            {"order", Bytes(shuffled.begin(), shuffled.end())}};
  }

  Draw draw_, modes_, data_;
  const std::vector<Space> spaces_;
  Shape image_;
  bool max_pools_ = false, normalises_ = false, per_shard_ = false;
  std::string position_;
  nn::Layer layers_;
  std::int64_t classes_ = 2, batch_ = 2, dataset_ = 2;
  optim::Optimizer optimizer_;
  train::StepRequest request_;
  plan::StateLayout state_;
  RandomProgram program_;
};

}  // namespace

RandomProgram random_network(std::uint32_t seed, std::uint32_t data,
                             const std::vector<Space>& spaces) {
  return RandomNetwork(seed, data, spaces).make();
}

}  // namespace arenite::oracle
