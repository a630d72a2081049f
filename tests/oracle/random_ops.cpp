// Random ops: any operator reads any value of a shape that fits, so that values get several users,
// views, views of views, and writers; what nobody reads at the end is an output, is accumulated, or
// stays unread.
#include "src/graph/versions.hpp"
#include "tests/oracle/random_attention.hpp"
#include "tests/oracle/random_elementwise.hpp"
#include "tests/oracle/random_images.hpp"
#include "tests/oracle/random_needless.hpp"
#include "tests/oracle/random_products.hpp"
#include "tests/oracle/random_updates.hpp"
#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {
namespace {

using graph::Attributes;
using graph::StorageClass;
using graph::ValueId;
using List = std::vector<std::int64_t>;

constexpr std::int64_t samples = 11;  // of the set that batches are gathered from
constexpr std::int64_t classes = 3;   // of its labels

class RandomOps : private RandomValues {
 public:
  RandomOps(std::uint32_t seed, std::uint32_t data, const std::vector<Space>& spaces)
      : RandomValues(seed),
        data_(~seed + 7919 * data),
        trained_(draw.chance(40)),
        spaces_(spaces) {}

  RandomProgram make() {
    build();
    return compile();
  }

  RandomGraph make_graph() {
    build();
    RandomGraph made;
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      const graph::Value& value = graph[ValueId(i)];
      if (!value.producer) made.numbers[value.name] = numbers(ValueId(i));
    }
    made.graph = std::move(graph);
    return made;
  }

 private:
  void build() {
    lanes_ = static_cast<int>(draw.between(0, 3));
    if (draw.chance(10) && !trained_) phase_ = Phase::evaluate;
    builder.context.phase = phase_;
    pointwise();  // so that there is something to run
    for (std::int64_t i = draw.between(4, 34); i > 0; --i) {
      add_op();
      if (!trained_ && draw.chance(8)) next_phase();
    }
    if (trained_ && draw.chance(30)) graph::fuse(graph, operators());
    if (trained_) train();
    if (trained_ && draw.chance(50)) graph::group_updates(graph, operators());
    if (trained_ && draw.chance(50)) graph::fuse_updates(graph, operators());
    finish();
  }

  // ---- ops -------------------------------------------------------------------------------------

  void add_op() {
    builder.context = {.phase = phase_, .lane = lane(), .where = {}};
    using Make = void (RandomOps::*)();
    static const std::vector<Make> always{
        &RandomOps::convolution,  &RandomOps::pooling,     &RandomOps::dense,
        &RandomOps::bias,         &RandomOps::pointwise,   &RandomOps::pointwise,
        &RandomOps::sum,          &RandomOps::view,        &RandomOps::view,
        &RandomOps::accumulate,   &RandomOps::gather,      &RandomOps::full,
        &RandomOps::indexed_rows, &RandomOps::elementwise, &RandomOps::elementwise,
        &RandomOps::product,      &RandomOps::attention,   &RandomOps::attention,
        &RandomOps::columns,      &RandomOps::needless,    &RandomOps::needless,
        &RandomOps::elementwise,  &RandomOps::elementwise};
    // These have no gradient themselves, or only of some results.
    static const std::vector<Make> untrained{
        &RandomOps::loss,          &RandomOps::loss,          &RandomOps::gradient,
        &RandomOps::gradient,      &RandomOps::gradient,      &RandomOps::gradient,
        &RandomOps::gradient,      &RandomOps::update,        &RandomOps::lanes_dense,
        &RandomOps::rare_gradient, &RandomOps::rare_gradient, &RandomOps::dense_to_relu,
        &RandomOps::conv_to_relu,  &RandomOps::weight_update, &RandomOps::multi_update,
        &RandomOps::multi_update};
    const std::size_t kinds = always.size() + (trained_ ? 0 : untrained.size());
    const std::size_t kind = draw.below(kinds);
    (this->*(kind < always.size() ? always[kind] : untrained[kind - always.size()]))();
  }

  int lane() {
    return lanes_ == 0 || draw.chance(15) ? graph::Op::shared_lane
                                          : static_cast<int>(draw.between(0, lanes_ - 1));
  }

  void next_phase() {
    if (phase_ == Phase::forward || phase_ == Phase::evaluate) {
      phase_ = Phase::backward;
    } else {
      phase_ = Phase::update;
    }
  }

  void convolution() { add_convolution(*this); }
  void conv_to_relu() { add_convolution_to_relu(*this); }
  void pooling() { add_pooling(*this); }
  void dense() {
    const auto features = draw.of<std::int64_t>({1, 3, 5, 10, 17});
    add_dense(matrix(), features);
  }

  ValueId add_dense(ValueId x, std::int64_t outputs) {
    const std::int64_t inputs = shape(x)[1];
    std::vector<ValueId> operands{x, weight({inputs, outputs}, inputs)};
    if (draw.chance(60)) operands.push_back(floats({outputs}));
    return builder.add1(draw.chance(80) ? "dense" : "dense_relu", operands);
  }

  void lanes_dense() { add_lanes_dense(*this); }
  void dense_to_relu() { add_dense_to_relu(*this); }
  void columns() { add_columns(*this); }
  void needless() { add_needless(*this); }

  void product() { draw.chance(60) ? add_product(*this) : add_permutation(*this); }

  void bias() {
    const ValueId x = tensor();
    builder.add("bias", {x, floats({shape(x).at(-1)})});
  }

  void pointwise() {
    const ValueId x = tensor();
    if (draw.chance(70)) {
      builder.add(draw.chance(90) ? "relu" : "identity", {x});
    } else {
      // No factor that a gradient could be asked of.
      builder.add("scale_by", {x, declare(DType::float32, {1}, {0.5, 1.5},
                                          draw.of({StorageClass::buffer, StorageClass::input}))});
    }
  }

  void elementwise() { add_elementwise(*this); }

  void full() {
    const auto dims = shape(tensor()).dims();
    builder.add("full", {},
                {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                 {"value", draw.chance(50) ? 0.0 : 0.5}});
  }

  void sum() {
    const ValueId first = any([&](ValueId id) { return graph[id].type != DType::uint8; });
    if (!first || shape(first).elements() > most_elements) return;
    std::vector<ValueId> terms{first};
    for (std::int64_t more = draw.between(0, 3); more > 0; --more) {
      const bool again = draw.chance(25) || graph[first].type != DType::float32;
      terms.push_back(again ? first : floats(shape(first)));
    }
    builder.add("sum", terms);
  }

  void view() { add_view(*this); }

  void indexed_rows() {
    // Codes of pooling windows are addresses: no others may take their place.
    const ValueId x = any([&](ValueId id) {
      return shape(id).rank() > 0 && shape(id).elements() <= most_elements &&
             graph[id].type != DType::uint8;
    });
    if (!x) return;
    const std::int64_t rows = shape(x)[0],
                       taken = draw.between(std::min<std::int64_t>(rows, 1), rows);
    const ValueId begin = index(rows - taken);
    if (draw.chance(50) || !may_renew(x)) {
      builder.add("dynamic_slice", {x, begin}, {{"rows", taken}});
    } else {
      // Integers may become labels.
      const Range range = graph[x].type == DType::float32 ? Range{} : Range{0, classes - 1};
      const ValueId rows_of_x = like(graph[x].type, shape(x).with(0, taken), range);
      renew(x);
      builder.add("replace_slice", {x, rows_of_x, begin});
    }
  }

  void attention() { add_attention_op(*this); }

  /// A new op and its gradient, where those of random earlier ops would be too rare.
  void rare_gradient() {
    const std::size_t before = graph.op_count();
    draw.chance(70) ? attention() : view();
    if (graph.op_count() > before) gradient_of(graph[graph::Graph::body].ops.back());
  }

  ValueId labels(std::int64_t count, std::int64_t of) {
    ValueId found;
    if (of >= classes && draw.chance(60)) {
      found = any([&](ValueId id) {
        if (graph[id].type != DType::int32 || shape(id) != Shape{count}) return false;
        if (graph[id].producer) return graph[graph[id].producer].name() == "draw";
        return range(id).high < static_cast<double>(of);
      });
    }
    if (found) return found;
    return declare(DType::int32, {count}, {0, static_cast<double>(of - 1)},
                   draw.of({StorageClass::constant, StorageClass::input}));
  }

  void loss() {
    // Of a single class, loss and gradient are 0 whatever the logits.
    const ValueId logits = matrix();
    if (shape(logits)[1] > 1) add_loss(logits);
  }

  ValueId add_loss(ValueId logits) {
    const ValueId truth = labels(shape(logits)[0], shape(logits)[1]);
    std::vector<ValueId> operands{logits, truth};
    if (draw.chance(30))
      operands.push_back(declare(DType::float32, {shape(logits)[0]}, {0, 2},
                                 draw.of({StorageClass::constant, StorageClass::input})));
    return builder.add("softmax_cross_entropy", operands, {{"divisor", draw.between(0, 8)}})
        .front();
  }

  void accumulate() { add_accumulation(*this); }
  void update() {
    if (!trained_ || phase_ == Phase::update) add_update(*this, phase_);
  }
  void weight_update() {
    if (phase_ == Phase::update) add_weight_update(*this);
  }
  void multi_update() {
    if (phase_ == Phase::update) add_multi_update(*this);
  }

  void gather() {
    if (gathers_ >= 2) return;
    ++gathers_;
    const std::int64_t side = draw.of<std::int64_t>({3, 5, 7});
    const StorageClass fixed = StorageClass::constant;
    const ValueId images = declare(
        DType::uint8, {samples, side, side, draw.of<std::int64_t>({1, 3})}, {0, 255}, fixed);
    const ValueId truth = declare(DType::uint8, {samples}, {0, classes - 1}, fixed);
    const ValueId order = declare(DType::int32, {samples}, {0, samples - 1}, fixed);
    const std::int64_t count = draw.between(1, 4), begin = draw.between(0, 3);
    const double last = static_cast<double>(samples - begin - count);
    const ValueId cursor = declare(DType::int64, {1}, {0, last}, StorageClass::input);
    const auto drawn = [&](ValueId data, const char* type, double scale) {
      const ValueId made = builder.add1(
          "draw", {data, order, cursor},
          {{"count", count}, {"begin", begin}, {"type", std::string(type)}, {"scale", scale}});
      // Half of them run a step ahead.
      if (gathers_ == 1) graph.storage(graph[made].storage).cls = StorageClass::input;
    };
    drawn(images, "float32", 1.0 / 255);
    drawn(truth, "int32", 1);
  }

  /// What the gradient rule of an earlier op appends, for gradients from anywhere.
  void gradient() {
    std::vector<graph::OpId> all;
    for (graph::OpId id : graph[graph::Graph::body].ops) {
      if (graph[id].definition->gradient) all.push_back(id);
    }
    if (!all.empty()) gradient_of(draw.of(all));
  }

  void gradient_of(graph::OpId id) {
    const ValueId result = graph[id].results.front();
    if (graph[result].type != DType::float32) return;
    const graph::Op op = graph[id];
    std::vector<ValueId> gradients(op.results.size());
    gradients.front() = floats(shape(result));
    if (graph::only_renews(op) && !renew(gradients.front())) return;
    std::vector<bool> wanted;
    for (const ValueId operand : op.operands)
      wanted.push_back(operand && graph[operand].type == DType::float32 && draw.chance(80));
    graph::GradientContext context(builder, id, gradients, wanted);
    op.definition->gradient(context);
  }

  // ---- the end ---------------------------------------------------------------------------------

  /// A loss or two, their gradients, and updates of some parameters.
  void train() {
    // The logits of all first: no loss may depend on another.
    std::vector<ValueId> logits, losses;
    for (std::int64_t i = draw.between(1, 2); i > 0; --i) {
      builder.context = {.phase = Phase::forward, .lane = lane(), .where = {}};
      const std::int64_t features = draw.between(2, 10);
      logits.push_back(add_dense(matrix(), features));
    }
    for (ValueId id : logits) {
      builder.context.lane = lane();
      losses.push_back(add_loss(id));
    }
    const ValueId rate = declare(DType::float32, {1}, {0.01, 0.05}, StorageClass::buffer);
    std::vector<ValueId> wrt;
    for (ValueId id : graph.declared(StorageClass::parameter)) {
      if (graph[id].type == DType::float32 && draw.chance(80)) wrt.push_back(id);
    }
    graph::add_gradients(builder, losses, wrt, [&](std::size_t i, ValueId gradient) {
      const graph::OpContext saved = std::exchange(
          builder.context,
          {.phase = Phase::update, .lane = graph::Op::shared_lane, .where = graph[wrt[i]].name});
      renew(wrt[i]);
      if (draw.chance(30)) {
        add_optimizer(*this, wrt[i], gradient, rate);
      } else {
        ValueId velocity;
        if (draw.chance(50)) {
          const Shape of = shape(wrt[i]);
          velocity = declare(DType::float32, of, {0, 0}, StorageClass::optimizer_state);
        }
        builder.add("sgd", {wrt[i], gradient, rate, velocity},
                    {{"momentum", velocity ? 0.9 : 0.0}, {"weight_decay", draw.of({0.0, 0.01})}});
      }
      builder.context = saved;
    });
    phase_ = Phase::update;
  }

  void finish() {
    builder.context = {.phase = phase_, .lane = lane(), .where = {}};
    const std::vector<bool> read = is_read();
    for (std::size_t i = 0; i < read.size(); ++i) {
      const ValueId id(i);
      if (read[i] || !graph[id].producer || graph[id].type != DType::float32) continue;
      if (draw.chance(50)) {
        graph.outputs.push_back(id);
      } else if (draw.chance(60)) {
        const ValueId total = declare(DType::float32, shape(id), {}, StorageClass::buffer);
        renew(total);
        builder.add("accumulate", {total, id});
      }
    }
    // Outputs that are read as well, views, inputs, parameters; the same one twice.
    for (std::int64_t i = draw.between(0, 2); i > 0; --i) graph.outputs.push_back(tensor());
    if (draw.chance(30)) graph.outputs.push_back(builder.add1("flatten", {tensor()}));
    if (graph.outputs.empty()) graph.outputs.push_back(tensor());
    if (draw.chance(10)) graph.outputs.push_back(graph.outputs.front());
    const ValueId pinned = draw.of(graph.outputs);
    if (draw.chance(20) && graph::is_transient(cls(pinned)))
      graph.storage(graph.root(pinned)).cls = StorageClass::output;
  }

  /// For a declared value.
  Bytes numbers(ValueId id) {
    const auto [low, high] = range(id);
    return random_bytes(data_, graph[id].type, shape(id).elements(), low, high);
  }

  RandomProgram compile() {
    RandomProgram program;
    runtime::ProgramSpec& spec = program.programs.emplace_back();
    spec.name = "ops";
    spec.target = random_target(draw);
    if (draw.chance(40)) graph::tidy(graph, operators());
    if (draw.chance(70)) graph::merge_sums(graph, operators());
    if (draw.chance(70)) graph::split_features(graph, operators(), spec.target);
    if (draw.chance(70)) graph::split_rows(graph, operators(), spec.target);
    graph::keep_state(graph, operators());
    const auto selector = runtime::kernel_selector(kernels());
    graph::place(graph, operators(), lanes_in_turn(spaces_, lanes_), *selector);
    graph::select(graph, *selector);
    graph::in_place(graph);
    spec.schedule = graph::coarsen(graph, spec.target);
    plan::StateLayout state;
    plan::StepOptions options;
    options.layout = draw.of({plan::ArenaLayout::overlay, plan::ArenaLayout::two});
    options.solve.strategy = draw.of<std::string>({"auto", "auto", "first_fit_by_area"});
    using plan::InFlight;
    options.in_flight = draw.of(
        {InFlight::lanes(), InFlight::lanes(), InFlight(1), InFlight(3), InFlight::unlimited()});
    spec.plan = plan::plan_step(graph, spec.schedule, state, options);
    NamedBytes constants;
    program.steps.resize(4);
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      const graph::Value& value = graph[ValueId(i)];
      if (value.producer || is_copied_constant(graph, ValueId(i))) continue;
      const StorageClass kind = cls(ValueId(i));
      if (kind == StorageClass::constant) constants[value.name] = numbers(ValueId(i));
      if (graph::is_persistent(kind)) program.state[value.name] = numbers(ValueId(i));
      if (kind != StorageClass::input) continue;
      for (Step& step : program.steps) step.inputs[value.name] = numbers(ValueId(i));
    }
    spec.graph = std::move(graph);
    complete(program, std::move(constants), state);
    return program;
  }

  Draw data_;
  const bool trained_;
  const std::vector<Space> spaces_;
  int lanes_ = 0, gathers_ = 0;
  Phase phase_ = Phase::forward;
};

}  // namespace

RandomGraph random_ops_graph(std::uint32_t seed) {
  return RandomOps(seed, 0, {Space{}}).make_graph();
}

RandomProgram random_ops(std::uint32_t seed, std::uint32_t data, const std::vector<Space>& spaces) {
  return RandomOps(seed, data, spaces).make();
}

}  // namespace arenite::oracle
