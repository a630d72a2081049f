// Runs one op's kernels outside the runtime: random operands, poisoned results, any halo, and guard
// pages around everything that a kernel is given.
//
// For tests only. Values are float32, float64, int32, int64 or uint8; reads and writes of whole
// tensors go through dense vectors, so that a test never sees a halo unless it asks for one.
#pragma once

#include "codelets/guarded_bytes.hpp"
#include "codelets/words.hpp"
#include "src/graph/versions.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets::testing {

/// One run of a kernel on the host's memory.
struct KernelRun {
  runtime::KernelFunction run;
  KernelCall call;
  std::span<void*const> operands, results;   ///< the call's
  std::vector<std::span<std::byte>> memory;  ///< all that its addresses lie in
};

/// Does the run here, or on a device, to which it copies the memory, and back.
using Runner = std::function<void(const KernelRun&)>;

inline void run_here(const KernelRun& one) { one.run(one.call); }

class OpHarness {
 public:
  explicit OpHarness(unsigned seed = 1, Runner runner = run_here)
      : random_(seed), builder_(graph_, operators()), runner_(std::move(runner)) {}

  graph::Graph& graph() { return graph_; }
  graph::Builder& builder() { return builder_; }

  ValueId declare(const std::string& name, DType type, Shape shape, int halo = 0,
                  graph::StorageClass cls = graph::StorageClass::buffer) {
    const ValueId id = builder_.declare(name, type, shape, cls);
    set_halo(id, halo);
    return id;
  }

  /// A float32 operand with values uniform in [low, high).
  ValueId random(const std::string& name, Shape shape, float low = -1, float high = 1,
                 int halo = 0) {
    const ValueId id = declare(name, DType::float32, shape, halo);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::uniform_real_distribution<float> uniform(low, high);
    for (float& v : values) v = uniform(random_);
    write(id, values);
    return id;
  }

  /// What a ReLU has made of such values: half of it zeros.
  ValueId rectified(const std::string& name, const Shape& shape, int halo = 0) {
    const ValueId id = random(name, shape, -1, 1, halo);
    std::vector<float> values = read<float>(id);
    for (float& v : values) v = std::max(v, 0.0f);
    write(id, values);
    return id;
  }

  std::mt19937& engine() { return random_; }

  /// Adds an op and remembers it as the one that `run` runs.
  std::vector<ValueId> op(std::string_view name, std::vector<ValueId> operands,
                          graph::Attributes attributes = {}) {
    auto results = builder_.add(name, std::move(operands), std::move(attributes));
    op_ = graph_[graph::Graph::body].ops.back();
    if (updates_in_place) lay_in_place();
    return results;
  }

  /// Whether new versions of states (see Renews) lie in the old ones' bytes.
  bool updates_in_place = true;

  void set_halo(ValueId id, int halo) {
    graph::Value& value = graph_[id];
    value.layout.halo = halo;
    graph_.storage(value.storage).bytes = graph::byte_size(value.type, value.shape, value.layout);
  }

  /// Names of the CPU kernels that support the op.
  std::vector<std::string> cpu_kernels(runtime::Compute compute = runtime::Compute::float32) const {
    std::vector<std::string> names;
    for (const Kernel* kernel : supporting(kernels(), DeviceKind::cpu)) {
      if (kernel->compute == compute) names.push_back(kernel->name);
    }
    return names;
  }

  /// A table's kernels for a device that support the op; the table keeps them.
  std::vector<const Kernel*> supporting(const runtime::KernelTable& table,
                                        DeviceKind device) const {
    std::vector<const Kernel*> found;
    const OpView view(graph_, graph_[op_]);
    for (const auto& kernel : table.find(graph_[op_].name())) {
      if (kernel.device == device && (!kernel.supports || kernel.supports(view)))
        found.push_back(&kernel);
    }
    return found;
  }

  /// Runs the op on what the operands hold, results and workspace full of NaN bytes; returns the
  /// status word. It runs twice from the same state: what it is given lies once just behind a guard
  /// page and once just before one.
  std::uint64_t run(const std::string& kernel_name) {
    return run(kernels().at(graph_[op_].name(), kernel_name, DeviceKind::cpu));
  }
  std::uint64_t run(const Kernel& kernel) {
    std::map<ValueId, std::vector<std::byte>> kept;
    for (ValueId id : graph_[op_].operands) {
      if (id) kept[id].assign(bytes(id).begin(), bytes(id).end());
    }
    const std::uint64_t in_front = run_at(kernel, GuardedBytes::Side::front);
    for (const auto& [id, values] : kept)
      std::copy(values.begin(), values.end(), bytes(id).begin());
    const std::uint64_t at_the_back = run_at(kernel, GuardedBytes::Side::back);
    EXPECT_EQ(in_front, at_the_back) << kernel.name;
    return at_the_back;
  }

  /// Lets result i of the op live in the bytes of an operand.
  void in_place(std::size_t result, std::size_t operand) {
    graph_.merge(graph_[graph_[op_].results.at(result)].storage,
                 graph_[graph_[op_].operands.at(operand)].storage);
  }

  /// Applies the op's gradient rule, runs each op that it appended with its first kernel (the named
  /// one where an op has it), and returns the operands' gradients. Afterwards the op is again what
  /// `run` runs.
  std::vector<ValueId> gradient(std::vector<ValueId> result_gradients, std::vector<bool> wanted,
                                const std::string& kernel_name = {},
                                std::size_t seed = graph::GradientContext::no_seed) {
    const graph::OpId forward = op_;
    const std::size_t before = graph_[graph::Graph::body].ops.size(), operands = wanted.size();
    graph::GradientContext context(builder_, forward, std::move(result_gradients),
                                   std::move(wanted), seed);
    graph_[forward].definition->gradient(context);
    for (std::size_t i = before; i < graph_[graph::Graph::body].ops.size(); ++i) {
      op_ = graph_[graph::Graph::body].ops[i];
      const std::vector<std::string> names = cpu_kernels();
      if (names.empty()) continue;  // a view
      const bool has = std::find(names.begin(), names.end(), kernel_name) != names.end();
      run(has ? kernel_name : names.front());
    }
    op_ = forward;
    std::vector<ValueId> gradients;
    for (std::size_t i = 0; i < operands; ++i) gradients.push_back(context.operand_gradient(i));
    return gradients;
  }

  /// Elements without the halo, in NHWC (row-major) order.
  template <class T>
  std::vector<T> read(ValueId id) {
    std::vector<T> dense(static_cast<std::size_t>(graph_[id].shape.elements()));
    const T* data = reinterpret_cast<const T*>(first_byte(id));
    for_each_row(id, [&](std::size_t from, std::size_t at, std::size_t n) {
      std::copy_n(data + at, n, &dense[from]);
    });
    return dense;
  }

  template <class T>
  void write(ValueId id, const std::vector<T>& dense) {
    T* data = reinterpret_cast<T*>(first_byte(id));
    for_each_row(id, [&](std::size_t from, std::size_t at, std::size_t n) {
      std::copy_n(&dense[from], n, data + at);
    });
  }

  /// True when every element of the value's halo is zero (poison is not).
  template <class T = float>
  bool halo_is_zero(ValueId id) {
    std::vector<T> all(bytes(id).size() / sizeof(T));
    // An empty value has no address that memcpy would take.
    if (!all.empty()) std::memcpy(all.data(), bytes(id).data(), all.size() * sizeof(T));
    for_each_row(
        id, [&](std::size_t, std::size_t at, std::size_t n) { std::fill_n(&all[at], n, T{0}); });
    for (T v : all) {
      if (!(v == T{0})) return false;
    }
    return true;
  }

 private:
  /// Bytes of a value's storage; zeros when first asked for.
  GuardedBytes& bytes(ValueId id) {
    GuardedBytes& storage = storages_[graph_.root(id).index];
    const auto want = static_cast<std::size_t>(graph_.root_storage(id).bytes);
    if (storage.size() != want || !storage.data()) storage = GuardedBytes(want);
    return storage;
  }

  /// A slice does not begin where its storage does.
  std::byte* first_byte(ValueId id) { return bytes(id).data() + graph_[id].offset; }

  bool lies_in_an_operand(ValueId id) const {
    for (ValueId operand : graph_[op_].operands) {
      if (operand && graph_.root(operand) == graph_.root(id)) return true;
    }
    return false;
  }

  /// Values may begin anywhere in a storage, so that kernels cannot count on the plan's alignment
  /// of theirs; of the workspace they can, as far as vectors go.
  static constexpr std::size_t vector_bytes = 64;

  std::uint64_t run_at(const Kernel& kernel, GuardedBytes::Side side) {
    const OpView view(graph_, graph_[op_]);
    const auto &inputs = graph_[op_].operands, &outputs = graph_[op_].results;
    std::vector<void*> operands, results;
    std::vector<ValueId> poisoned;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) bytes(inputs[i]).move_to(side);
      if (inputs[i] && skips_halo(kernel, i)) poisoned.push_back(inputs[i]);
      operands.push_back(inputs[i] ? first_byte(inputs[i]) : nullptr);
    }
    for (ValueId id : poisoned) fill_halo(id, std::byte{0xff});
    for (ValueId id : outputs) {
      // An in-place result (see Graph::merge) lies in an operand's bytes: those are not poisoned.
      if (!lies_in_an_operand(id)) {
        bytes(id).move_to(side);
        std::fill(bytes(id).begin(), bytes(id).end(), std::byte{0xff});
      }
      results.push_back(first_byte(id));
    }
    const std::int64_t scratch = kernel.workspace ? kernel.workspace(view) : 0;
    GuardedBytes workspace(static_cast<std::size_t>(scratch), vector_bytes);
    workspace.move_to(side);
    std::fill(workspace.begin(), workspace.end(), std::byte{0xff});
    const PreparedKernel prepared = kernel.prepare(view);
    runtime::StatusWord status;
    runner_({.run = prepared.run,
             .call = {.operands = operands.data(),
                      .results = results.data(),
                      .workspace = workspace.data(),
                      .state = prepared.state.get(),
                      .status = &status,
                      .op = op_.index},
             .operands = operands,
             .results = results,
             .memory = memory_of_op(workspace)});
    EXPECT_TRUE(workspace.intact()) << kernel.name << " wrote outside its workspace";
    const auto expect_intact = [&](ValueId id) {
      EXPECT_TRUE(!id || bytes(id).intact()) << kernel.name << " wrote outside " << graph_[id].name;
    };
    std::for_each(inputs.begin(), inputs.end(), expect_intact);
    std::for_each(outputs.begin(), outputs.end(), expect_intact);
    for (ValueId id : poisoned) fill_halo(id, std::byte{0});
    return status.load();
  }

  /// The storages of the op's values, once each, and its workspace.
  std::vector<std::span<std::byte>> memory_of_op(GuardedBytes& workspace) {
    std::set<std::uint32_t> roots;
    for (const auto& values : {graph_[op_].operands, graph_[op_].results}) {
      for (ValueId id : values) {
        if (id) roots.insert(graph_.root(id).index);
      }
    }
    std::vector<std::span<std::byte>> memory;
    for (std::uint32_t root : roots)
      memory.emplace_back(storages_.at(root).data(), storages_.at(root).size());
    memory.emplace_back(workspace.data(), workspace.size());
    return memory;
  }

  /// A kernel that wishes for no halo on an operand has no use for the one that is there, and may
  /// not read it. (Not told of bytes that another operand or a result has too.)
  bool skips_halo(const Kernel& kernel, std::size_t operand) const {
    const OpView view(graph_, graph_[op_]);
    const ValueId id = graph_[op_].operands[operand];
    if (graph_[id].layout.halo == 0 || !kernel.wanted_halo ||
        kernel.wanted_halo(view, operand) != 0)
      return false;
    const auto shares = [&](ValueId other) {
      return other && graph_.root(other) == graph_.root(id);
    };
    const auto &inputs = graph_[op_].operands, &outputs = graph_[op_].results;
    return std::count_if(inputs.begin(), inputs.end(), shares) == 1 &&
           std::none_of(outputs.begin(), outputs.end(), shares);
  }

  void fill_halo(ValueId id, std::byte with) {
    const graph::Value& value = graph_[id];
    const auto size = static_cast<std::size_t>(byte_size(value.type, value.shape, value.layout)),
               element = static_cast<std::size_t>(size_of(value.type));
    std::byte* first = first_byte(id);
    const std::vector<std::byte> kept(first, first + size);
    std::fill_n(first, size, with);
    for_each_row(id, [&](std::size_t, std::size_t at, std::size_t n) {
      std::copy_n(&kept[at * element], n * element, first + at * element);
    });
  }

  template <class F>
  void for_each_row(ValueId id, F f) {
    const graph::Value& value = graph_[id];
    const auto total = static_cast<std::size_t>(value.shape.elements());
    if (total == 0) return;
    if (value.layout.halo == 0) return f(std::size_t{0}, std::size_t{0}, total);
    const auto halo = static_cast<std::size_t>(value.layout.halo);
    const auto n = static_cast<std::size_t>(value.shape[0]),
               h = static_cast<std::size_t>(value.shape[1]),
               row = static_cast<std::size_t>(value.shape[2] * value.shape[3]),
               c = static_cast<std::size_t>(value.shape[3]);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t y = 0; y < h; ++y) {
        f((i * h + y) * row, (i * (h + 2 * halo) + y + halo) * (row + 2 * halo * c) + halo * c,
          row);
      }
    }
  }

  void lay_in_place() {
    graph::for_each_renewed(graph_[op_], [&](std::size_t result, std::size_t operand) {
      const graph::Op& op = graph_[op_];
      if (op.definition->operand_schema(operand).renews != graph::Renews::state) return;
      const graph::StorageId made = graph_[op.results[result]].storage;
      graph_[op.results[result]].offset = graph_[op.operands[operand]].offset;
      graph_.storage(made).bytes += graph_[op.operands[operand]].offset;
      graph_.merge(made, graph_.root(op.operands[operand]));
    });
  }

  std::mt19937 random_;
  graph::Graph graph_;
  graph::Builder builder_;
  graph::OpId op_;
  std::map<std::uint32_t, GuardedBytes> storages_;
  Runner runner_;
};

/// gradient = 0 where output is at most 0, as a ReLU's output lets it through; relu(output) where
/// both are the same.
template <class T>
void zero_where_dead(const std::vector<T>& output, std::vector<double>& gradient) {
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (output[i] <= 0) gradient[i] = 0;
  }
}

/// max|a−b| ≤ tol · max|b| over the whole tensor; NaN anywhere fails.
template <class T, class U>
void expect_close(const std::vector<T>& actual, const std::vector<U>& expected, double tol,
                  const std::string& what = {}) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0, worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    ASSERT_FALSE(std::isnan(a)) << what << ": NaN at " << i;
    largest = std::max(largest, std::fabs(e));
    if (std::fabs(a - e) > worst) worst = std::fabs(a - e), where = i;
  }
  EXPECT_LE(worst, tol * largest) << what << ": element " << where << " is " << actual.at(where)
                                  << ", expected " << expected.at(where);
}

/// Gradient of sum(weights · f(x)) with respect to x by central differences, in double: the
/// reference of every gradient rule. Keep x away from kinks.
template <class F>
std::vector<double> numeric_gradient(F f, std::vector<double> x, const std::vector<double>& weights,
                                     double h = 1e-4) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + h;
    const std::vector<double> above = f(x);
    x[i] = middle - h;
    const std::vector<double> below = f(x);
    x[i] = middle;
    for (std::size_t j = 0; j < weights.size(); ++j)
      gradient[i] += weights[j] * (above[j] - below[j]) / (2 * h);
  }
  return gradient;
}

/// The call throws an Error with exactly this message.
template <class F>
void expect_error(F call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), message);
  }
}

template <class T>
std::vector<double> as_doubles(const std::vector<T>& values) {
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace arenite::codelets::testing
