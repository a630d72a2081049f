#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/sweep.hpp>

#include <algorithm>

#include "src/base/refuse.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/values.hpp"

namespace arenite::graph {
namespace {

constexpr const char* batch_axis = "N";  // of inputs whose batch has no name

class Sweeper {
 public:
  Sweeper(const Graph& source, const OperatorTable& table, const Sweep& sweep)
      : source_(source), sweep_(sweep), builder_(target_, table), map_(source.value_count()) {}

  Graph run() {
    draw();
    for (const ValueId id : declared_values(source_)) {
      if (!map_[id.index]) map_[id.index] = copy_declared(source_, id, builder_);
    }
    for (const OpId id : source_[Graph::body].ops)
      copy_op(source_, id, source_[id].lane, map_, builder_);
    copy_ends(source_, map_, target_);
    keep();
    return std::move(target_);
  }

 private:
  void draw() {
    builder_.context = {.phase = Phase::forward, .lane = Op::shared_lane, .where = "batch"};
    std::vector<ValueId> inputs, data;
    for (const DrawnInput& drawn : sweep_.inputs) {
      inputs.push_back(input(drawn.input));
      const Value& value = source_[inputs.back()];
      data.push_back(builder_.declare(drawn.data, drawn.type, value.shape.with(0, sweep_.samples),
                                      StorageClass::constant));
    }
    batch_ = source_[inputs.front()].shape[0];
    const ValueId order =
        builder_.declare(sweep_.order, DType::int32, {sweep_.samples}, StorageClass::constant);
    cursor_ = builder_.declare(sweep_.cursor, DType::int64, {1}, StorageClass::input);
    if (sweep_.first.empty()) return draw(inputs, data, order, cursor_, true);
    const ValueId first = builder_.declare(sweep_.first, DType::int64, {1}, StorageClass::constant),
                  chosen = builder_.add1("dynamic_slice", {order, cursor_}, {{"rows", batch_}});
    as_input(chosen, inputs.front());
    draw(inputs, data, chosen, first, false);
  }

  void draw(const std::vector<ValueId>& inputs, const std::vector<ValueId>& data, ValueId order,
            ValueId cursor, bool staged) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = source_[inputs[i]];
      const ValueId drawn = builder_.add1("draw", {data[i], order, cursor},
                                          {{"count", value.shape[0]},
                                           {"type", std::string(to_string(value.type))},
                                           {"scale", sweep_.inputs[i].scale}});
      target_[drawn].name = target_.storage(target_[drawn].storage).name = value.name;
      if (staged) as_input(drawn, inputs[i]);
      map_[inputs[i].index] = drawn;
    }
  }

  /// With one copy for each task set: the next batch is drawn behind this step.
  void as_input(ValueId drawn, ValueId input) {
    const std::string& batch = source_[input].batch;
    target_[drawn].batch = batch.empty() ? batch_axis : batch;
    target_.storage(target_[drawn].storage).cls = StorageClass::input;
  }

  ValueId input(const std::string& name) const {
    const std::vector<ValueId> all = source_.declared(StorageClass::input);
    const auto found =
        std::ranges::find_if(all, [&](ValueId id) { return source_[id].name == name; });
    if (found == all.end()) {
      std::string known;
      for (const ValueId id : all) known += (known.empty() ? "" : ", ") + source_[id].name;
      refuse("samples for an unknown input '" + name + "'", known.empty() ? "none" : known);
    }
    const Shape& shape = source_[*found].shape;
    const std::int64_t batch = source_[input_of_batch(all)].shape[0];
    if (shape.rank() == 0 || shape[0] != batch) {
      refuse("samples for input '" + name + "' " + to_string(shape),
             "an input of the batch of " + std::to_string(batch));
    }
    return *found;
  }

  /// The first that is drawn.
  ValueId input_of_batch(const std::vector<ValueId>& all) const {
    return *std::ranges::find_if(
        all, [&](ValueId id) { return source_[id].name == sweep_.inputs.front().input; });
  }

  /// What comes out.
  void keep() {
    for (std::size_t i = 0; i < target_.outputs.size(); ++i) {
      const ValueId output = target_.outputs[i];
      std::string name = target_[output].name;
      if (name.empty()) name = "output_" + std::to_string(i);
      builder_.context.where = name;
      const DType type = target_[output].type;
      const Shape shape = target_[output].shape;
      if (sweep_.rows.empty()) {
        const ValueId total = builder_.declare(name, type, shape, StorageClass::buffer);
        builder_.add("accumulate", {total, output});
        continue;
      }
      if (shape.rank() == 0 || shape[0] != batch_) {
        refuse("rows of output '" + name + "' " + to_string(shape),
               "[" + std::to_string(batch_) + ", …], one for each sample");
      }
      if (target_.find(StorageClass::buffer, sweep_.rows) || target_.outputs.size() > 1) {
        refuse("a buffer '" + sweep_.rows + "' that is there already",
               "another name, and one output whose rows are kept");
      }
      const ValueId all =
          builder_.declare(sweep_.rows, type, shape.with(0, sweep_.samples), StorageClass::buffer);
      builder_.add("replace_slice", {all, output, cursor_});
    }
    target_.outputs.clear();
  }

  const Graph& source_;
  const Sweep& sweep_;
  Graph target_;
  Builder builder_;
  std::vector<ValueId> map_;
  std::int64_t batch_ = 0;
  ValueId cursor_;
};

}  // namespace

Graph swept(const Graph& graph, const OperatorTable& table, const Sweep& sweep) {
  expect_before_select(graph, "a sweep");
  if (sweep.inputs.empty()) refuse("a sweep over no data", "samples for one input or more");
  Graph at_bounds = graph;
  fix_attributes(at_bounds);
  return Sweeper(at_bounds, table, sweep).run();
}

}  // namespace arenite::graph
