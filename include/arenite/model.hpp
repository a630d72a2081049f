// Models: a graph compiled once and evaluated many times, for inference.
//
//   runtime::Session session;
//   Model model(session, graph::parse(script, operators()), {{"weight", {data, bytes}}});
//   model.evaluate({{"image", pixels}}, {logits});
//
// Compiling plans every byte and builds every task; evaluating copies the inputs in and the outputs
// out, and calls no allocator in between. What the graph replaces in a buffer is there in the next
// evaluation (see graph::keep_buffers). One thread at a time may use a model; several models may be
// used by several threads at once.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/session.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite {

/// A value that goes into a model or comes out of it.
struct Port {
  std::string name;
  DType type = DType::float32;
  Shape shape;

  std::int64_t bytes() const noexcept { return shape.elements() * size_of(type); }
};

/// Bytes under a name, borrowed for one call. Dense, in row-major order.
struct NamedBytes {
  std::string_view name;
  const void* data = nullptr;
  std::optional<std::int64_t> bytes;  ///< checked against the shape where they are given
};

struct ModelOptions {
  std::string name = "model";
  graph::TargetProfile target = graph::default_target();
};

class Model {
 public:
  /// Compiles the graph. Constants are copied. Buffers, and parameters, begin as zeros (see
  /// `state`). Throws Error on whatever is wrong with the graph, on a size that only a run knows
  /// (graph::at_sizes fixes those), and on a constant that is missing, unknown, given twice or of
  /// another size.
  Model(runtime::Session& session, graph::Graph graph, std::span<const NamedBytes> constants,
        const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// In the order of their declarations; unnamed outputs are "output_0", "output_1", …
  const std::vector<Port>& inputs() const noexcept;
  const std::vector<Port>& outputs() const noexcept;

  /// Runs the graph once: reads the inputs, each named once, and writes all outputs, in order.
  /// Throws Error on an input that is missing, unknown, given twice, null or of another size, on
  /// another number of outputs or a null one, and on what only a run can find out (an index out of
  /// range); then buffers keep what they held.
  void evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs);

  /// Bytes of a buffer or parameter, between evaluations. Throws Error on an unknown name.
  std::span<std::byte> state(std::string_view name);

  /// The memory of one evaluation: arenas, blocks, bounds.
  const plan::StepPlan& plan() const noexcept;
  void print_plan(std::ostream& out) const;
  long evaluations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite
