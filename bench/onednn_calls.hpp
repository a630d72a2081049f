// A network's calls of oneDNN, forward and backward, with their memory: what onednn_loop.cpp runs.
//
// A function makes a primitive and its results, notes the call, and returns where the result will
// be. Whoever calls them in a network's order has the calls of a step, in `calls`.
#pragma once

#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

namespace arenite::bench::onednn {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;
using Tag = memory::format_tag;

/// A convolution with ReLU, a max-pool 2, or a dense layer (with ReLU, but for the last).
struct Layer {
  enum Kind : std::uint8_t { convolution, pool, dense } kind;
  memory::dim channels = 0, kernel = 3, padding = 1;
};

inline memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Tag::any}; }

/// The attributes of every primitive: scratch memory is ours and shared.
inline dnnl::primitive_attr with_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// ReLU's gradient needs only its output, so it may be fused even in training.
inline dnnl::primitive_attr with_relu() {
  dnnl::primitive_attr attributes = with_scratchpad();
  dnnl::post_ops relu;
  relu.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  attributes.set_post_ops(relu);
  return attributes;
}

/// Weights or a bias, with its momentum and gradient, all in one format.
struct Parameter {
  memory value, velocity, gradient;

  std::int64_t size() const {
    return static_cast<std::int64_t>(value.get_desc().get_size() / sizeof(float));
  }
};

struct Calls {
  std::uint64_t seed = 1;  ///< of initial weights
  float relu_gain = 1;     ///< weights before ReLU begin in ±relu_gain/√fan_in
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::size_t scratch_bytes = 0;  ///< what the hungriest call needs
  std::vector<Parameter> parameters;

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
    const Philox random(seed, Purpose::initialise, static_cast<std::uint32_t>(parameters.size()));
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
    made.weights = parameter(made.forward.weights_desc(), weights, Tag::oihw, fan_in, relu_gain);
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
                  fan_in, relu ? relu_gain : 1.0f);
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

  std::vector<Call> calls;
};

}  // namespace arenite::bench::onednn
