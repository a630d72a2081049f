#include "bench/onednn_loop.hpp"

#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include "bench/onednn_calls.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace arenite::bench {

using namespace onednn;

namespace {

constexpr memory::dim classes = 10;

struct Network {
  memory::dim side, channels;
  std::vector<Layer> layers;
  bool he = false;  ///< weights before ReLU begin in ±√(6/fan_in), not ±1/√fan_in
};

Network network_of(const std::string& name) {
  const auto conv = [](memory::dim channels, memory::dim kernel = 3, memory::dim padding = 1) {
    return Layer{Layer::convolution, channels, kernel, padding};
  };
  const auto dense = [](memory::dim units) { return Layer{Layer::dense, units}; };
  const Layer pool{Layer::pool};
  if (name == "mlp") return {28, 1, {dense(512), dense(10)}};
  if (name == "cnn1") return {28, 1, {conv(4, 3, 0), pool, dense(10)}};
  if (name == "lenet5") {
    return {28, 1, {conv(6, 5, 2), pool, conv(16, 5, 0), pool, dense(120), dense(84), dense(10)}};
  }
  if (name == "cnn2") return {28, 1, {conv(32), pool, conv(64), pool, dense(128), dense(10)}};
  if (name == "vgg-small") {
    return {32,
            3,
            {conv(64), conv(64), pool, conv(128), conv(128), pool, conv(256), conv(256), pool,
             dense(512), dense(10)},
            true};
  }
  fail({.found = "network '" + name + "'", .expected = "mlp, cnn1, lenet5, cnn2 or vgg-small"});
}

/// On every thread that computes, as our workers do: momentum of dead weights turns denormal within
/// a thousand steps.
void flush_denormals() {
#if defined(__SSE__)
#pragma omp parallel
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
}

}  // namespace

struct OnednnLoop::Impl : Calls {
  Impl(const data::Split& split, const Options& chosen) : train(split), options(chosen) {
    if (train.shape() != Shape{network.side, network.side, network.channels} ||
        train.classes > classes) {
      fail({.found = "images of shape " + to_string(train.shape()),
            .expected = "those of " + options.network + ", of at most 10 classes"});
    }
    if (options.batch < 1 || options.batch > train.count) {
      fail({.found = "a batch of " + std::to_string(options.batch),
            .expected = "1 to " + std::to_string(train.count)});
    }
    omp_set_num_threads(options.threads);
    flush_denormals();
    order.resize(static_cast<std::size_t>(train.count));
    next = train.count;
    seed = options.seed;
    relu_gain = network.he ? std::sqrt(6.0f) : 1.0f;
    build();
    scratchpad = memory({{static_cast<memory::dim>(std::max<std::size_t>(scratch_bytes, 1))},
                         memory::data_type::u8,
                         Tag::a},
                        engine);
    for (Call& call : calls) {
      if (call.scratch.get_size() > 0) {
        call.arguments[DNNL_ARG_SCRATCHPAD] =
            memory(call.scratch, engine, scratchpad.get_data_handle());
      }
    }
  }

  /// A layer as it was built, with all that its gradient needs.
  struct Built {
    Convolution convolution;
    Pool pool;
    Dense dense;
  };

  std::vector<Built> forward() {
    memory x = images;
    Dims dims = x.get_desc().dims();
    std::vector<Built> built;
    for (const Layer& layer : network.layers) {
      Built made;
      if (layer.kind == Layer::convolution) {
        made.convolution = convolution(x, dims, layer);
        x = made.convolution.dst, dims = made.convolution.dst_dims;
      } else if (layer.kind == Layer::pool) {
        made.pool = max_pool(built.back().convolution);
        x = made.pool.dst, dims = x.get_desc().dims();
      } else {
        made.dense = dense(x, dims, layer.channels, &layer != &network.layers.back());
        x = made.dense.dst, dims = made.dense.dst_dims;
      }
      built.push_back(std::move(made));
    }
    return built;
  }

  void backward(const std::vector<Built>& built, memory gradient) {
    for (std::size_t i = built.size(); i-- > 0;) {
      const Built& made = built[i];
      const bool last = i + 1 == built.size();
      if (network.layers[i].kind == Layer::convolution) {
        const bool pooled = !last && network.layers[i + 1].kind == Layer::pool;
        if (!pooled) gradient = relu_gradient(made.convolution.dst, gradient);
        convolution_weights(made.convolution, gradient);
        if (i > 0) gradient = convolution_data(made.convolution, gradient);
      } else if (network.layers[i].kind == Layer::pool) {
        gradient =
            unpool(made.pool, built[i - 1].convolution.dst, relu_gradient(made.pool.dst, gradient));
      } else {
        if (!last) gradient = relu_gradient(made.dense.dst, gradient);
        dense_weights(made.dense, gradient);
        if (i > 0) gradient = dense_data(made.dense, gradient);
      }
    }
  }

  void build() {
    const memory::dim n = options.batch;
    images = make(
        {{n, network.channels, network.side, network.side}, memory::data_type::f32, Tag::nchw});
    labels.resize(static_cast<std::size_t>(n));
    const std::vector<Built> built = forward();
    const memory::desc plain({n, classes}, memory::data_type::f32, Tag::ab);
    logits = reordered(built.back().dense.dst, plain);
    forward_calls = calls.size();
    logits_gradient = make(plain);
    backward(built, logits_gradient);
  }

  void gather(std::int64_t begin) {
    auto* out = static_cast<float*>(images.get_data_handle());
    const std::int64_t bytes = train.image_bytes();
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < options.batch; ++i) {
      const std::int64_t sample = order[static_cast<std::size_t>(begin + i)];
      const std::uint8_t* from = train.image(sample).data();
      float* to = out + i * bytes;
      const std::int64_t pixels = bytes / train.channels;
      for (std::int64_t c = 0; c < train.channels; ++c) {
#pragma omp simd
        for (std::int64_t p = 0; p < pixels; ++p)
          to[c * pixels + p] = static_cast<float>(from[p * train.channels + c]) * (1.0f / 255);
      }
      labels[static_cast<std::size_t>(i)] = train.labels[static_cast<std::size_t>(sample)];
    }
  }

  /// Softmax cross-entropy and its gradient; 10 numbers a sample are no work for threads.
  double loss() {
    const auto* z = static_cast<const float*>(logits.get_data_handle());
    auto* g = static_cast<float*>(logits_gradient.get_data_handle());
    const float scale = 1.0f / static_cast<float>(options.batch);
    double sum = 0;
    for (std::int64_t i = 0; i < options.batch; ++i, z += classes, g += classes) {
      const float largest = *std::max_element(z, z + classes);
      float total = 0;
      for (int k = 0; k < classes; ++k) total += g[k] = std::exp(z[k] - largest);
      const int label = labels[static_cast<std::size_t>(i)];
      sum += std::log(total) - (z[label] - largest);
      for (int k = 0; k < classes; ++k) g[k] *= scale / total;
      g[label] -= scale;
    }
    return sum;
  }

  void update() {
    const float rate = options.learning_rate, momentum = options.momentum;
#pragma omp parallel
    for (const Parameter& p : parameters) {
      auto* w = static_cast<float*>(p.value.get_data_handle());
      auto* v = static_cast<float*>(p.velocity.get_data_handle());
      const auto* g = static_cast<const float*>(p.gradient.get_data_handle());
      const std::int64_t size = p.size();
#pragma omp for simd schedule(static) nowait
      for (std::int64_t i = 0; i < size; ++i) {
        v[i] = momentum * v[i] + g[i];
        w[i] -= rate * v[i];
      }
    }
  }

  double step(std::int64_t begin) {
    gather(begin);
    for (std::size_t i = 0; i < forward_calls; ++i)
      calls[i].primitive.execute(stream, calls[i].arguments);
    const double sum = loss();
    for (std::size_t i = forward_calls; i < calls.size(); ++i)
      calls[i].primitive.execute(stream, calls[i].arguments);
    update();
    return sum;
  }

  const data::Split train;
  const Options options;
  const Network network = network_of(options.network);
  std::size_t forward_calls = 0;
  memory scratchpad, images, logits, logits_gradient;
  std::vector<int> labels;
  std::vector<std::int32_t> order;
  std::uint32_t epochs = 0;
  std::int64_t next = 0;  // the first sample of the next batch, in this order
};

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

OnednnLoop::OnednnLoop(const data::Split& train, const Options& options)
    : impl_(std::make_unique<Impl>(train, options)) {}
OnednnLoop::~OnednnLoop() = default;

OnednnLoop::Part OnednnLoop::run(double seconds) {
  Impl& self = *impl_;
  const std::int64_t batch = self.options.batch;
  const auto start = std::chrono::steady_clock::now();
  Part part;
  do {
    if (self.next + batch > self.train.count) {
      permutation(self.order, self.options.seed, self.epochs++);
      self.next = 0;
    }
    part.loss += self.step(self.next);
    self.next += batch, part.samples += batch;
    part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (part.seconds < seconds);
  part.loss /= static_cast<double>(part.samples);
  return part;
}

}  // namespace arenite::bench
