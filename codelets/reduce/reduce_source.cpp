#include "codelets/reduce/reduce_source.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "codelets/cuda/generated.hpp"
#include "codelets/map/map.hpp"
#include "src/expr/cuda.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::codelets {
namespace {

using expr::Function;
using expr::Node;
using expr::NodeId;
using expr::Type;

/// Totals that are put together at once; a thread's elements where groups are few and large.
constexpr std::int64_t joined = 64, least_elements = 16, most_in_one_go = 32;
constexpr std::int64_t wanted_threads = std::int64_t{1} << 17, most_parts = joined * joined;

constexpr std::string_view preamble = R"(using namespace arenite::expr;
/// A NaN comes before all.
template <class T>
__device__ inline bool comes_before(T a, T b, bool least) {
  if (a != a) return b == b;
  if (b != b) return false;
  return least ? a < b : b < a;
}
)";

bool is_place(Function function) noexcept {
  return function == Function::first_least || function == Function::first_greatest;
}

class Writer {
 public:
  explicit Writer(const OpView& op)
      : op_(op), formula_(formula_of(op)), space_(space_of(op)), varies_(formula_.varying()) {
    std::vector<Seen> seen = seen_by(op, formula_);
    graph::Value numbers;
    numbers.shape = space_.whole;
    numbers_ = seen.size();
    seen.push_back({&numbers});
    axes_ = joint_axes(seen, space_);
    group_ = space_.group();
    for (const JointAxis& axis : axes_) groups_ *= axis.is_reduced ? 1 : axis.size;
    if (std::ranges::any_of(space_.whole, [](std::int64_t size) { return size == 0; }))
      groups_ = kept_elements();
    is_row_ = !axes_.empty() && axes_.back().is_reduced;
    sort_nodes();
    parts_ = parts();
  }

  ReduceSource write() {
    for (std::size_t stage = 0; stage < stages_ && groups_ > 0; ++stage) sweep(stage);
    if (has_elements_ && space_.whole.elements() > 0) elements();
    return std::move(made_);
  }

 private:
  std::int64_t kept_elements() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < space_.whole.rank(); ++axis)
      count *= space_.reduces(axis) ? 1 : space_.whole[axis];
    return count;
  }

  /// What is one for a group, and the first sweep that may read it.
  void sort_nodes() {
    for (const Node& node : formula_.nodes()) {
      bool of_group = node.function != Function::index;
      if (node.function == Function::operand) of_group = is_of_group(node.payload);
      std::size_t stage = 0;
      for (const NodeId source : expr::sources_of(node)) {
        of_group = of_group && of_group_[source];
        stage = std::max(stage, stage_[source]);
      }
      if (expr::is_reduction(node.function)) {
        of_group = true;
        stages_ = std::max(stages_, ++stage);
      }
      of_group_.push_back(of_group);
      stage_.push_back(stage);
    }
    for (const NodeId result : formula_.results()) has_elements_ = has_elements_ || varies_[result];
    offsets_.assign(of_group_.size(), -1);
  }

  bool is_of_group(std::size_t value) const {
    return std::ranges::all_of(
        axes_, [&](const JointAxis& axis) { return !axis.is_reduced || axis.step[value] == 0; });
  }

  std::int64_t parts() const {
    if (group_ <= most_in_one_go || groups_ == 0) return 1;
    return std::clamp(wanted_threads / groups_, std::int64_t{1},
                      std::min(most_parts, group_ / least_elements));
  }

  std::int64_t take(std::int64_t count) {
    const std::int64_t at = made_.workspace;
    made_.workspace += round_up(count * 8, std::int64_t{256});
    return at;
  }

  // ---- Text ------------------------------------------------------------------------------------

  static std::string name(NodeId node) { return fmt::format("t{}", node); }

  /// Where a value's element is, by the places along the axes.
  std::string element(std::size_t value) const {
    std::string sum;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const std::int64_t step = axes_[a].step[value];
      if (step == 0) continue;
      sum += fmt::format("{}x{}", sum.empty() ? "" : " + ", a);
      if (step > 1) sum += fmt::format(" * {}", step);
    }
    return sum.empty() ? "0" : sum;
  }

  /// The places along some axes, of a number that counts their elements.
  std::string places(std::string_view number, bool reduced, bool all = false) const {
    std::string text;
    std::int64_t step = 1;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      if (!all && axes_[a].is_reduced != reduced) continue;
      text += fmt::format("const Index x{} = {} / {} % {};\n", a, number, step, axes_[a].size);
      step *= axes_[a].size;
    }
    return text;
  }

  std::string group_of_places() const {
    std::string sum;
    std::int64_t step = 1;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      if (axes_[a].is_reduced) continue;
      sum += fmt::format("{}x{} * {}", sum.empty() ? "" : " + ", a, step);
      step *= axes_[a].size;
    }
    return sum.empty() ? "0" : sum;
  }

  std::string statement(NodeId id) const {
    expr::CudaNames names;
    for (std::size_t v = 0; v < op_.operand_count(); ++v)
      names.operands.push_back(fmt::format("in{}[{}]", v, element(v)));
    std::int64_t step = 1;
    for (int axis = space_.whole.rank(); axis-- > 0; step *= space_.whole[axis]) {
      names.indices.insert(names.indices.begin(), fmt::format("({}) / {} % {}", element(numbers_),
                                                              step, space_.whole[axis]));
    }
    return expr::cuda_statement(formula_, id, names);
  }

  std::string in_workspace(std::string_view type, std::int64_t at, std::string_view index) const {
    return fmt::format("*reinterpret_cast<{}*>(workspace + {} + 8L * ({}))", type, at, index);
  }

  /// What is made of these, and those that it is made of: of a group, of earlier sweeps, it is
  /// read.
  std::string statements(std::vector<NodeId> wanted, std::size_t stage, bool of_group) {
    std::vector<bool> needed(of_group_.size(), false);
    for (const NodeId id : wanted) needed[id] = true;
    for (NodeId id = static_cast<NodeId>(needed.size()); id-- > 0;) {
      if (!needed[id] || is_read(id, stage)) continue;
      for (const NodeId source : expr::sources_of(formula_[id])) needed[source] = true;
    }
    std::string text;
    for (NodeId id = 0; id < needed.size(); ++id) {
      if (!needed[id] || of_group_[id] != of_group || is_declared_[id]) continue;
      is_declared_[id] = of_group;  // others in a loop, and no more
      if (is_read(id, stage)) {
        const std::string_view type = expr::cuda_name(formula_[id].type);
        text += fmt::format("const {} {} = {};\n", type, name(id),
                            in_workspace(type, offset_of(id), "g"));
      } else if (!expr::is_reduction(formula_[id].function)) {
        text += statement(id);
      }
    }
    return text;
  }

  /// Made at the end of a sweep before this one; operands and what is made of them are made again.
  bool is_read(NodeId id, std::size_t stage) const {
    return of_group_[id] && stage_[id] > 0 && stage_[id] <= stage;
  }

  std::int64_t offset_of(NodeId id) {
    if (offsets_[id] < 0) offsets_[id] = take(groups_);
    return offsets_[id];
  }

  void launch(const std::string& body, std::int64_t count) {
    std::string parameters;
    for (std::size_t i = 0; i < formula_.operands().size(); ++i)
      parameters += fmt::format("const {}* in{}, ", expr::cuda_name(formula_.operands()[i]), i);
    for (std::size_t i = 0; i < formula_.results().size(); ++i)
      parameters += fmt::format("{}* out{}, ", expr::cuda_name(formula_.result_type(i)), i);
    made_.launches.push_back({cuda::source_of_each(expr::cuda_preamble() + std::string(preamble),
                                                   parameters + "char* workspace", body,
                                                   std::max(count, space_.whole.elements())),
                              count});
  }

  // ---- Totals ----------------------------------------------------------------------------------

  struct Fold {
    NodeId node, source;
    Function function;
    std::string_view type, total;     // of the values, and of their total
    std::int64_t at = 0, places = 0;  // of totals in the workspace
  };

  std::vector<Fold> folds_of(std::size_t stage) const {
    std::vector<Fold> folds;
    for (NodeId id = 0; id < stage_.size(); ++id) {
      const Node& node = formula_[id];
      if (!expr::is_reduction(node.function) || stage_[id] != stage + 1) continue;
      const Type type = formula_[node.sources[0]].type;
      const bool adds = node.function == Function::sum || node.function == Function::product;
      folds.push_back({id, node.sources[0], node.function, expr::cuda_name(type),
                       !adds            ? expr::cuda_name(type)
                       : is_float(type) ? "double"
                                        : "unsigned long"});
    }
    return folds;
  }

  std::string begin(const Fold& fold) const {
    const Type type = formula_[fold.source].type;
    std::string none = fold.function == Function::product ? "1" : "0";
    const bool least = fold.function == Function::least;
    if (least || fold.function == Function::greatest) {
      Node node{.function = Function::constant, .type = type};
      node.payload = expr::with_value(type, [&]<class T>(T) {
        using Limits = std::numeric_limits<T>;
        if constexpr (std::is_same_v<T, bool>) return expr::payload_of(least);
        if constexpr (std::is_floating_point_v<T>)
          return expr::payload_of(least ? Limits::infinity() : -Limits::infinity());
        return expr::payload_of(static_cast<T>(least ? Limits::max() : Limits::lowest()));
      });
      none = expr::cuda_constant(node);
    }
    std::string text = fmt::format("{} f{} = {};\n", fold.total, fold.node, none);
    if (is_place(fold.function)) text += fmt::format("std::int64_t n{} = -1;\n", fold.node);
    return text;
  }

  /// Takes another value, or total, in; `place` is where it is in its group.
  std::string add(const Fold& fold, const std::string& value, const std::string& place) const {
    const bool is_truth = formula_[fold.source].type == Type::boolean;
    switch (fold.function) {
      case Function::sum:
        return fmt::format("f{} += static_cast<{}>({});\n", fold.node, fold.total, value);
      case Function::product:
        return fmt::format("f{} *= static_cast<{}>({});\n", fold.node, fold.total, value);
      case Function::least:
      case Function::greatest: {
        const bool least = fold.function == Function::least;
        if (is_truth)
          return fmt::format("f{0} = f{0} {1} {2};\n", fold.node, least ? "&&" : "||", value);
        return fmt::format("f{0} = of<Function::{1}>(f{0}, {2});\n", fold.node,
                           least ? "min" : "max", value);
      }
      default:
        return fmt::format(
            "if ({2} >= 0 && (n{0} < 0 || comes_before({1}, f{0}, {3}) ||\n"
            "    (!comes_before(f{0}, {1}, {3}) && {2} < n{0}))) {{ f{0} = {1}; n{0} = {2}; }}\n",
            fold.node, value, place, fold.function == Function::first_least);
    }
  }

  std::string end(const Fold& fold) {
    is_declared_[fold.node] = true;
    const std::string_view type = expr::cuda_name(formula_[fold.node].type);
    return fmt::format("const {} {} = static_cast<{}>({}{});\n", type, name(fold.node), type,
                       is_place(fold.function) ? "n" : "f", fold.node);
  }

  std::string store(const Fold& fold) const {
    std::string text =
        fmt::format("{} = f{};\n", in_workspace(fold.total, fold.at, "i"), fold.node);
    if (is_place(fold.function))
      text += fmt::format("{} = n{};\n", in_workspace("std::int64_t", fold.places, "i"), fold.node);
    return text;
  }

  void make_room(std::vector<Fold>& folds, std::int64_t parts) {
    for (Fold& fold : folds) {
      fold.at = take(groups_ * parts);
      if (is_place(fold.function)) fold.places = take(groups_ * parts);
    }
  }

  /// Group g and part c of thread i, of which neighbours read neighbouring elements.
  std::string parted(std::int64_t parts) const {
    return is_row_ ? fmt::format("const Index g = i / {0}, c = i % {0};\n", parts)
                   : fmt::format("const Index g = i % {0}, c = i / {0};\n", groups_);
  }
  std::string part(std::int64_t parts, std::string_view c) const {
    return is_row_ ? fmt::format("g * {} + {}", parts, c) : fmt::format("{} * {} + g", c, groups_);
  }

  /// Of a kernel's text: nothing is there.
  void start() { is_declared_.assign(of_group_.size(), false); }

  // ---- Kernels ---------------------------------------------------------------------------------

  void sweep(std::size_t stage) {
    std::vector<Fold> folds = folds_of(stage);
    std::vector<NodeId> sources;
    for (const Fold& fold : folds) sources.push_back(fold.source);
    start();
    std::string body = parted(parts_) + places("g", false) + statements(sources, stage, true);
    for (const Fold& fold : folds) body += begin(fold);
    if (group_ > 0) {
      body += fmt::format("for (Index e = c; e < {}; e += {}) {{\n", group_, parts_);
      body += places("e", true) + statements(sources, stage, false);
      for (const Fold& fold : folds) body += add(fold, name(fold.source), "e");
      body += "}\n";
    }
    std::int64_t parts = parts_;
    if (parts > 1) {
      make_room(folds, parts);
      for (const Fold& fold : folds) body += store(fold);
      launch(body, groups_ * parts);
    }
    while (parts > 1) {
      const std::int64_t left = parts > joined ? joined : 1;
      start();
      body = parted(left);
      for (const Fold& fold : folds) body += begin(fold);
      body += fmt::format("for (Index p = c; p < {}; p += {}) {{\n", parts, left);
      for (const Fold& fold : folds) {
        const std::string index = part(parts, "p");
        body += add(fold, in_workspace(fold.total, fold.at, index),
                    in_workspace("std::int64_t", fold.places, index));
      }
      body += "}\n";
      parts = left;
      if (parts == 1) {
        body += places("g", false);
        break;
      }
      make_room(folds, parts);
      for (const Fold& fold : folds) body += store(fold);
      launch(body, groups_ * parts);
    }
    launch(body + behind(folds, stage + 1), groups_);
  }

  /// What comes of a group's totals: results, and what later sweeps read.
  std::string behind(const std::vector<Fold>& folds, std::size_t stage) {
    std::string text;
    for (const Fold& fold : folds) text += end(fold);
    std::vector<NodeId> wanted;
    for (NodeId id = 0; id < stage_.size(); ++id) {
      if (of_group_[id] && stage_[id] == stage) wanted.push_back(id);
    }
    const bool is_last = stage == stages_;
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      const NodeId result = formula_.results()[r];
      if (is_last && !varies_[result]) wanted.push_back(result);
    }
    text += statements(wanted, stage - 1, true);
    for (NodeId id = 0; id < stage_.size(); ++id) {
      if (!of_group_[id] || stage_[id] != stage || !is_read_later(id, stage)) continue;
      text += fmt::format("{} = {};\n",
                          in_workspace(expr::cuda_name(formula_[id].type), offset_of(id), "g"),
                          name(id));
    }
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      const NodeId result = formula_.results()[r];
      if (is_last && !varies_[result]) text += fmt::format("out{}[g] = {};\n", r, name(result));
    }
    return text;
  }

  bool is_read_later(NodeId id, std::size_t stage) const {
    for (NodeId reader = id + 1; reader < stage_.size(); ++reader) {
      const auto sources = expr::sources_of(formula_[reader]);
      const bool reads = std::ranges::find(sources, id) != sources.end();
      if (reads && (!of_group_[reader] || stage_[reader] > stage)) return true;
    }
    return std::ranges::any_of(formula_.results(), [&](NodeId result) {
      return result == id && (varies_[id] || stage < stages_);
    });
  }

  void elements() {
    std::vector<NodeId> wanted;
    for (const NodeId result : formula_.results()) {
      if (varies_[result]) wanted.push_back(result);
    }
    start();
    std::string body =
        places("i", false, true) + fmt::format("const Index g = {};\n", group_of_places());
    body += statements(wanted, stages_, true);
    body += statements(wanted, stages_, false);
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      const NodeId result = formula_.results()[r];
      if (varies_[result]) body += fmt::format("out{}[i] = {};\n", r, name(result));
    }
    launch(body, space_.whole.elements());
  }

  const OpView& op_;
  expr::Expression formula_;
  Space space_;
  std::vector<bool> varies_, of_group_, is_declared_;  // by node
  std::vector<std::size_t> stage_;
  std::size_t stages_ = 0, numbers_ = 0;
  std::vector<JointAxis> axes_;
  std::int64_t groups_ = 1, group_ = 1, parts_ = 1;
  bool is_row_ = false, has_elements_ = false;
  std::vector<std::int64_t> offsets_;  // of a group's values in the workspace, by node
  ReduceSource made_;
};

}  // namespace

ReduceSource reduce_source(const OpView& op) { return Writer(op).write(); }

}  // namespace arenite::codelets
