#include "bench/onednn_loop.hpp"

#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace arenite::bench {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;
using Tag = memory::format_tag;

constexpr memory::dim classes = 10;

/// A convolution with ReLU, a max-pool 2, or a dense layer (with ReLU, but for the last).
struct Layer {
  enum Kind : std::uint8_t { convolution, pool, dense } kind;
  memory::dim channels = 0, kernel = 3, padding = 1;
};

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

memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Tag::any}; }

/// The attributes of every primitive: scratch memory is ours and shared.
dnnl::primitive_attr with_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// ReLU's gradient needs only its output, so it may be fused even in training.
dnnl::primitive_attr with_relu() {
  dnnl::primitive_attr attributes = with_scratchpad();
  dnnl::post_ops relu;
  relu.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  attributes.set_post_ops(relu);
  return attributes;
}

/// On every thread that computes, as our workers do: momentum of dead weights turns denormal within
/// a thousand steps.
void flush_denormals() {
#if defined(__SSE__)
#pragma omp parallel
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
}

/// Weights or a bias, with its momentum and gradient, all in one format.
struct Parameter {
  memory value, velocity, gradient;

  std::int64_t size() const {
    return static_cast<std::int64_t>(value.get_desc().get_size() / sizeof(float));
  }
};

}  // namespace

struct OnednnLoop::Impl {
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

  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
    memory::desc scratch;
  };

  template <class Descriptor>
  void add(const Descriptor& descriptor, const dnnl::primitive& primitive,
           std::unordered_map<int, memory> arguments) {
    calls.push_back({primitive, std::move(arguments), descriptor.scratchpad_desc()});
    scratch_bytes = std::max(scratch_bytes, calls.back().scratch.get_size());
  }

  memory make(const memory::desc& desc) const {
    memory made(desc, engine);
    // Blocked formats have padding that must be zero.
    std::fill_n(static_cast<std::byte*>(made.get_data_handle()), desc.get_size(), std::byte{0});
    return made;
  }

  /// The same values in another format; a call of its own only where the formats differ.
  memory reordered(const memory& from, const memory::desc& to) {
    if (from.get_desc() == to) return from;
    memory result = make(to);
    reorder(from, result);
    return result;
  }
  void reorder(const memory& from, const memory& to) {
    const dnnl::reorder::primitive_desc descriptor(from, to, with_scratchpad());
    add(descriptor, dnnl::reorder(descriptor), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// Uniform in ±gain/√fan_in, as our layers begin.
  memory parameter(const memory::desc& format, const Dims& dims, Tag plain, memory::dim fan_in,
                   float gain = 1) {
    Parameter made{make(format), make(format), make(format)};
    memory values(memory::desc(dims, memory::data_type::f32, plain), engine);
    auto* at = static_cast<float*>(values.get_data_handle());
    const float range = gain / std::sqrt(static_cast<float>(fan_in));
    const Philox random(options.seed, Purpose::initialise,
                        static_cast<std::uint32_t>(parameters.size()));
    const auto count =
        std::accumulate(dims.begin(), dims.end(), memory::dim{1}, std::multiplies<>());
    for (memory::dim i = 0; i < count; ++i)
      at[i] = random.uniform(static_cast<std::uint64_t>(i), -range, range);
    dnnl::reorder(values, made.value).execute(stream, values, made.value);
    stream.wait();
    parameters.push_back(made);
    return made.value;
  }
  const memory& gradient_of(const memory& value) const {
    for (const Parameter& p : parameters) {
      if (p.value.get() == value.get()) return p.gradient;
    }
    fail({.found = "a gradient of no parameter", .expected = "one of a parameter's value"});
  }

  struct Convolution {
    dnnl::convolution_forward::primitive_desc forward;
    memory src, weights, bias, dst;
    Dims src_dims, weights_dims, dst_dims, padding;
  };
  struct Pool {
    dnnl::pooling_forward::primitive_desc forward;
    memory dst, workspace;
  };
  struct Dense {
    dnnl::inner_product_forward::primitive_desc forward;
    memory src, weights, bias, dst;
    Dims dst_dims;
  };

  float gain() const { return network.he ? std::sqrt(6.0f) : 1.0f; }

  Convolution convolution(const memory& src, const Dims& src_dims, const Layer& layer) {
    const memory::dim shrink = layer.kernel - 1 - 2 * layer.padding;
    const Dims weights{layer.channels, src_dims[1], layer.kernel, layer.kernel},
        dst{src_dims[0], layer.channels, src_dims[2] - shrink, src_dims[3] - shrink},
        padding{layer.padding, layer.padding};
    const dnnl::convolution_forward::desc what(
        prop_kind::forward_training, algorithm::convolution_direct, any(src_dims), any(weights),
        any({layer.channels}), any(dst), {1, 1}, padding, padding);
    const memory::dim fan_in = src_dims[1] * layer.kernel * layer.kernel;
    Convolution made{.forward = {what, with_relu(), engine},
                     .src_dims = src_dims,
                     .weights_dims = weights,
                     .dst_dims = dst,
                     .padding = padding};
    made.src = reordered(src, made.forward.src_desc());
    made.weights = parameter(made.forward.weights_desc(), weights, Tag::oihw, fan_in, gain());
    made.bias = parameter(made.forward.bias_desc(), {layer.channels}, Tag::a, fan_in);
    made.dst = make(made.forward.dst_desc());
    add(made.forward, dnnl::convolution_forward(made.forward),
        {{DNNL_ARG_SRC, made.src},
         {DNNL_ARG_WEIGHTS, made.weights},
         {DNNL_ARG_BIAS, made.bias},
         {DNNL_ARG_DST, made.dst}});
    return made;
  }

  Pool max_pool(const Convolution& from) {
    Dims dst = from.dst_dims;  // rounded down where odd: the window's rest is left out
    dst[2] /= 2, dst[3] /= 2;
    const dnnl::pooling_forward::desc what(prop_kind::forward_training, algorithm::pooling_max,
                                           from.dst.get_desc(), any(dst), {2, 2}, {2, 2}, {0, 0},
                                           {0, 0});
    Pool made{.forward = {what, with_scratchpad(), engine}};
    made.dst = make(made.forward.dst_desc());
    made.workspace = make(made.forward.workspace_desc());
    add(made.forward, dnnl::pooling_forward(made.forward),
        {{DNNL_ARG_SRC, from.dst}, {DNNL_ARG_DST, made.dst}, {DNNL_ARG_WORKSPACE, made.workspace}});
    return made;
  }

  /// The source stays as the pool wrote it: asked for `any`, oneDNN 2.6 wants plain formats that
  /// cost three reorders a step, of 1.6 MB of weights among others.
  Dense dense(const memory& src, const Dims& src_dims, memory::dim units, bool relu) {
    Dims weights = src_dims;
    weights[0] = units;
    const memory::dim fan_in =
        std::accumulate(src_dims.begin() + 1, src_dims.end(), memory::dim{1}, std::multiplies<>());
    const dnnl::inner_product_forward::desc what(prop_kind::forward_training, src.get_desc(),
                                                 any(weights), any({units}),
                                                 any({src_dims[0], units}));
    Dense made{.forward = {what, relu ? with_relu() : with_scratchpad(), engine},
               .dst_dims = {src_dims[0], units}};
    made.src = src;
    made.weights =
        parameter(made.forward.weights_desc(), weights, weights.size() == 4 ? Tag::oihw : Tag::ab,
                  fan_in, relu ? gain() : 1.0f);
    made.bias = parameter(made.forward.bias_desc(), {units}, Tag::a, fan_in);
    made.dst = make(made.forward.dst_desc());
    add(made.forward, dnnl::inner_product_forward(made.forward),
        {{DNNL_ARG_SRC, made.src},
         {DNNL_ARG_WEIGHTS, made.weights},
         {DNNL_ARG_BIAS, made.bias},
         {DNNL_ARG_DST, made.dst}});
    return made;
  }

  /// The gradients of weights and bias. A weight gradient in another format than the weights is
  /// reordered: it is small beside the activations.
  template <class Primitive, class Descriptor>
  void weights_gradient(const Descriptor& descriptor, const memory& src, const memory& weights,
                        const memory& bias, const memory& dst_gradient) {
    const memory& wanted = gradient_of(weights);
    const bool same = wanted.get_desc() == descriptor.diff_weights_desc();
    const memory written = same ? wanted : make(descriptor.diff_weights_desc());
    const memory x = reordered(src, descriptor.src_desc());
    const memory dy = reordered(dst_gradient, descriptor.diff_dst_desc());
    add(descriptor, Primitive(descriptor),
        {{DNNL_ARG_SRC, x},
         {DNNL_ARG_DIFF_DST, dy},
         {DNNL_ARG_DIFF_WEIGHTS, written},
         {DNNL_ARG_DIFF_BIAS, gradient_of(bias)}});
    if (!same) reorder(written, wanted);
  }

  template <class Primitive, class Descriptor>
  memory data_gradient(const Descriptor& descriptor, const memory& weights,
                       const memory& dst_gradient) {
    const memory w = reordered(weights, descriptor.weights_desc());
    const memory dy = reordered(dst_gradient, descriptor.diff_dst_desc());
    memory dx = make(descriptor.diff_src_desc());
    add(descriptor, Primitive(descriptor),
        {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}});
    return dx;
  }

  void convolution_weights(const Convolution& c, const memory& gradient) {
    const dnnl::convolution_backward_weights::desc what(
        algorithm::convolution_direct, any(c.src_dims), any(c.weights_dims), c.bias.get_desc(),
        any(c.dst_dims), {1, 1}, c.padding, c.padding);
    weights_gradient<dnnl::convolution_backward_weights>(
        dnnl::convolution_backward_weights::primitive_desc(what, with_scratchpad(), engine,
                                                           c.forward),
        c.src, c.weights, c.bias, gradient);
  }
  memory convolution_data(const Convolution& c, const memory& gradient) {
    const dnnl::convolution_backward_data::desc what(algorithm::convolution_direct, any(c.src_dims),
                                                     any(c.weights_dims), any(c.dst_dims), {1, 1},
                                                     c.padding, c.padding);
    return data_gradient<dnnl::convolution_backward_data>(
        dnnl::convolution_backward_data::primitive_desc(what, with_scratchpad(), engine, c.forward),
        c.weights, gradient);
  }
  void dense_weights(const Dense& d, const memory& gradient) {
    const dnnl::inner_product_backward_weights::desc what(d.src.get_desc(), d.weights.get_desc(),
                                                          d.bias.get_desc(), any(d.dst_dims));
    weights_gradient<dnnl::inner_product_backward_weights>(
        dnnl::inner_product_backward_weights::primitive_desc(what, with_scratchpad(), engine,
                                                             d.forward),
        d.src, d.weights, d.bias, gradient);
  }
  memory dense_data(const Dense& d, const memory& gradient) {
    const dnnl::inner_product_backward_data::desc what(d.src.get_desc(), d.weights.get_desc(),
                                                       any(d.dst_dims));
    return data_gradient<dnnl::inner_product_backward_data>(
        dnnl::inner_product_backward_data::primitive_desc(what, with_scratchpad(), engine,
                                                          d.forward),
        d.weights, gradient);
  }

  /// In place, from ReLU's output. Behind a pooling layer it may stand before the unpooling: what
  /// the pool chose is positive exactly where the pooled value is, and it is a quarter of the work.
  memory relu_gradient(const memory& output, const memory& gradient) {
    const memory dy = reordered(gradient, output.get_desc());
    const dnnl::eltwise_backward::primitive_desc descriptor(
        {algorithm::eltwise_relu_use_dst_for_bwd, dy.get_desc(), output.get_desc(), 0.0f},
        with_scratchpad(), engine, hint_of_relu(output.get_desc()));
    add(descriptor, dnnl::eltwise_backward(descriptor),
        {{DNNL_ARG_DST, output}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dy}});
    return dy;
  }
  dnnl::eltwise_forward::primitive_desc hint_of_relu(const memory::desc& desc) const {
    return {{prop_kind::forward_training, algorithm::eltwise_relu_use_dst_for_bwd, desc, 0.0f},
            engine};
  }

  memory unpool(const Pool& pool, const memory& src, const memory& gradient) {
    const memory dy = reordered(gradient, pool.dst.get_desc());
    const dnnl::pooling_backward::desc what(algorithm::pooling_max, src.get_desc(), dy.get_desc(),
                                            {2, 2}, {2, 2}, {0, 0}, {0, 0});
    const dnnl::pooling_backward::primitive_desc descriptor(what, with_scratchpad(), engine,
                                                            pool.forward);
    memory dx = make(src.get_desc());
    add(descriptor, dnnl::pooling_backward(descriptor),
        {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}, {DNNL_ARG_WORKSPACE, pool.workspace}});
    return dx;
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
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Call> calls;
  std::size_t forward_calls = 0, scratch_bytes = 0;
  memory scratchpad, images, logits, logits_gradient;
  std::vector<Parameter> parameters;
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
