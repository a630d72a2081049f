// A reduction as kernels for GPUs.
//
// Where there are enough groups, one kernel does all: each group is a thread's, or, where its
// elements lie in a row, 32 threads', which read side by side. Else there are two for each sweep
// over the groups' elements, in which threads make totals of parts of them, and 32 threads put
// those of a group together; and one in the end that makes what has all elements.
#include "codelets/map/source.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "codelets/cuda/generated.hpp"
#include "codelets/map/totals_source.hpp"
#include "src/expr/cuda.hpp"

namespace arenite::codelets {
namespace {

using expr::Function;
using expr::Node;
using expr::NodeId;

constexpr std::int64_t threads_of_block = 256, lanes_of_row = 32;
/// Threads that keep a large GPU busy; elements that are worth one; parts that are put together at
/// once.
constexpr std::int64_t wanted_threads = std::int64_t{1} << 17, least_elements = 16,
                       most_parts = 1024;
/// Of a group that is left to a thread, or to a row's threads, however few groups there are.
constexpr std::int64_t most_in_one_go = 32, most_in_row = 4096;

class Writer {
 public:
  explicit Writer(const Elementwise& op)
      : formula_(op.formula), space_(op.space), varies_(formula_.varying()) {
    std::vector<Seen> seen = op.values;
    graph::Value numbers;
    numbers.shape = space_.whole;
    numbers_ = seen.size();
    seen.push_back({&numbers});
    axes_ = joint_axes(seen, space_);
    group_ = space_.group();
    for (int axis = 0; axis < space_.whole.rank(); ++axis)
      groups_ *= space_.reduces(axis) ? 1 : space_.whole[axis];
    is_row_ = !axes_.empty() && axes_.back().is_reduced;
    sort_nodes();
  }

  GroupLaunches write() {
    if (groups_ == 0) return {};
    const std::int64_t parts = parted();
    if (parts == 1) {
      whole(is_row_ && group_ > 1);
    } else {
      for (std::size_t stage = 0; stage < stages_; ++stage) sweep(stage, parts);
      if (has_elements_) elements();
    }
    return std::move(made_);
  }

 private:
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

  /// Of each group, as many as threads: 1 where one kernel does all.
  std::int64_t parted() const {
    const std::int64_t threads = groups_ * (is_row_ ? lanes_of_row : 1);
    if (stages_ == 0) return 1;  // nothing but its count is asked for
    if (group_ <= (is_row_ ? most_in_row : most_in_one_go) || threads >= wanted_threads) return 1;
    return std::clamp(wanted_threads / groups_, std::int64_t{1},
                      std::min(most_parts, group_ / least_elements));
  }

  std::int64_t take(std::int64_t bytes) {
    const std::int64_t at = made_.workspace;
    made_.workspace += round_up(bytes, std::int64_t{256});
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

  /// The places along all axes, or those that are reduced or not, of a number that counts their
  /// elements.
  std::string places(std::string_view number, std::optional<bool> reduced) const {
    std::string text;
    std::int64_t step = 1;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      if (reduced && axes_[a].is_reduced != *reduced) continue;
      text += fmt::format("const Place x{} = {} / {} % {};\n", a, number, step, axes_[a].size);
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
    expr::CudaNames names{.operands = {}, .indices = {}, .group = group_};
    for (std::size_t v = 0; v < formula_.operands().size(); ++v)
      names.operands.push_back(fmt::format("in{}[{}]", v, element(v)));
    std::int64_t step = 1;
    for (int axis = space_.whole.rank(); axis-- > 0; step *= space_.whole[axis]) {
      names.indices.insert(names.indices.begin(), fmt::format("({}) / {} % {}", element(numbers_),
                                                              step, space_.whole[axis]));
    }
    return expr::cuda_statement(formula_, id, names);
  }

  static std::string in_workspace(std::string_view type, std::int64_t at, std::string_view index) {
    return fmt::format("reinterpret_cast<{}*>(workspace + {})[{}]", type, at, index);
  }

  /// What is made of these, and those that it is made of: of a group, of earlier sweeps, it is
  /// read.
  std::string statements(const std::vector<NodeId>& wanted, std::size_t stage, bool of_group) {
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

  /// Made in a kernel before this one; operands and what is made of them alone are made again.
  bool is_read(NodeId id, std::size_t stage) const {
    return !is_whole_ && of_group_[id] && stage_[id] > 0 && stage_[id] <= stage;
  }

  std::int64_t offset_of(NodeId id) {
    if (offsets_[id] < 0) offsets_[id] = take(groups_ * expr::size_of(formula_[id].type));
    return offsets_[id];
  }

  void launch(const std::string& body, std::int64_t count) {
    std::string parameters;
    for (std::size_t i = 0; i < formula_.operands().size(); ++i)
      parameters += fmt::format("const {}* in{}, ", expr::cuda_name(formula_.operands()[i]), i);
    for (std::size_t i = 0; i < formula_.results().size(); ++i)
      parameters += fmt::format("{}* out{}, ", expr::cuda_name(formula_.result_type(i)), i);
    const bool is_narrow = cuda::is_narrow(std::max(space_.whole.elements(), count));
    const std::string before = expr::cuda_preamble() + std::string(totals_preamble) +
                               fmt::format("using Place = {};\n", is_narrow ? "int" : "long");
    made_.launches.push_back(
        {cuda::source_of_each(before, parameters + "char* workspace", body, count), count});
  }

  /// Of a kernel in which 32 threads share a group: all of a block wait for each other, and so none
  /// may be left out.
  std::string shared_group() const {
    return fmt::format(
        "if (i % 32 >= lanes) continue;\n"
        "const bool is_there = i / 32 < {0};\n"
        "const Place g = is_there ? i / 32 : {0} - 1, lane = i % 32;\n",
        groups_);
  }
  std::int64_t shared_threads() const { return round_up(groups_ * lanes_of_row, threads_of_block); }

  // ---- Totals ----------------------------------------------------------------------------------

  std::vector<Total> folds_of(std::size_t stage) const {
    std::vector<Total> folds;
    for (NodeId id = 0; id < stage_.size(); ++id) {
      const Node& node = formula_[id];
      if (!expr::is_reduction(node.function) || stage_[id] != stage + 1) continue;
      folds.emplace_back(formula_, id);
    }
    return folds;
  }

  /// The totals of elements from number `first` on, `step` apart.
  std::string loop(const std::vector<Total>& folds, std::size_t stage, std::string_view first,
                   std::string_view step, std::string_view end) {
    std::string body;
    for (const Total& fold : folds) body += fold.begin();
    if (group_ == 0) return body;
    body +=
        fmt::format("#pragma unroll 4\nfor (Place e = {}; e < {}; e += {}) {{\n", first, end, step);
    body += places("e", true) + statements(sources_of(folds), stage, false);
    for (const Total& fold : folds) {
      const std::string value = name(fold.source);
      body += fold.add(fold.is_place() ? fmt::format("{}{{{}, e}}", fold.total, value)
                                       : fmt::format("static_cast<{}>({})", fold.total, value));
    }
    return body + "}\n";
  }
  static std::vector<NodeId> sources_of(const std::vector<Total>& folds) {
    std::vector<NodeId> sources;
    for (const Total& fold : folds) sources.push_back(fold.source);
    return sources;
  }

  std::string end(const Total& fold) {
    is_declared_[fold.node] = true;
    const std::string_view type = expr::cuda_name(formula_[fold.node].type);
    return fmt::format("const {} {} = static_cast<{}>({}{});\n", type, name(fold.node), type,
                       fold.name(), fold.is_place() ? ".place" : "");
  }

  /// Of a kernel's text: nothing is there.
  void start() { is_declared_.assign(of_group_.size(), false); }

  std::vector<NodeId> results(bool varying) const {
    std::vector<NodeId> wanted;
    for (const NodeId result : formula_.results()) {
      if (varies_[result] == varying) wanted.push_back(result);
    }
    return wanted;
  }
  std::string store_results(bool varying, std::string_view at) const {
    std::string text;
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      const NodeId result = formula_.results()[r];
      if (varies_[result] == varying) text += fmt::format("out{}[{}] = {};\n", r, at, name(result));
    }
    return text;
  }

  // ---- Kernels ---------------------------------------------------------------------------------

  /// One for all.
  void whole(bool is_shared) {
    is_whole_ = true;
    start();
    std::string body = is_shared ? shared_group() : "const Place g = i;\n";
    const std::string first = is_shared ? "lane" : "0", step = is_shared ? "lanes" : "1";
    const std::string last =
        is_shared ? fmt::format("(is_there ? {} : 0)", group_) : std::to_string(group_);
    body += places("g", false);
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const std::vector<Total> folds = folds_of(stage);
      body += statements(sources_of(folds), stage, true);
      body += loop(folds, stage, first, step, last);
      for (const Total& fold : folds) {
        if (is_shared) body += fold.join_lanes();
        body += end(fold);
      }
    }
    body += statements(results(false), stages_, true);
    body += statements(results(true), stages_, true);
    if (const std::string stored = store_results(false, "g"); !stored.empty())
      body += (is_shared ? "if (is_there && lane == 0) {\n" : "{\n") + stored + "}\n";
    if (has_elements_ && group_ > 0) {
      body += fmt::format("#pragma unroll 4\nfor (Place e = {}; e < {}; e += {}) {{\n", first, last,
                          step);
      body += places("e", true) + statements(results(true), stages_, false);
      body += store_results(true, element(numbers_)) + "}\n";
    }
    launch(body, is_shared ? shared_threads() : groups_);
  }

  void sweep(std::size_t stage, std::int64_t parts) {
    std::vector<Total> folds = folds_of(stage);
    // Neighbouring threads read neighbouring elements.
    start();
    std::string body = is_row_ ? fmt::format("const Place g = i / {0}, c = i % {0};\n", parts)
                               : fmt::format("const Place g = i % {0}, c = i / {0};\n", groups_);
    body += places("g", false) + statements(sources_of(folds), stage, true);
    body += loop(folds, stage, "c", std::to_string(parts), std::to_string(group_));
    for (Total& fold : folds) {
      fold.at = take(groups_ * parts * (fold.is_place() ? 16 : 8));
      body += fmt::format("{} = {};\n", in_workspace(fold.total, fold.at, "i"), fold.name());
    }
    launch(body, groups_ * parts);

    start();
    body = shared_group() + places("g", false);
    for (const Total& fold : folds) body += fold.begin();
    body += fmt::format("#pragma unroll 4\nfor (Place p = lane; p < {}; p += lanes) {{\n", parts);
    const std::string part =
        is_row_ ? fmt::format("g * {} + p", parts) : fmt::format("p * {} + g", groups_);
    for (const Total& fold : folds) body += fold.add(in_workspace(fold.total, fold.at, part));
    body += "}\n";
    for (const Total& fold : folds) body += fold.join_lanes() + end(fold);
    launch(body + behind(stage + 1), shared_threads());
  }

  /// What comes of a group's totals: results, and what later sweeps read.
  std::string behind(std::size_t stage) {
    const bool is_last = stage == stages_;
    std::vector<NodeId> wanted;
    if (is_last) wanted = results(false);
    for (NodeId id = 0; id < stage_.size(); ++id) {
      if (of_group_[id] && stage_[id] == stage) wanted.push_back(id);
    }
    std::string text =
        statements(wanted, stage - 1, true) + "if (!is_there || lane > 0) continue;\n";
    for (NodeId id = 0; id < stage_.size(); ++id) {
      if (!of_group_[id] || stage_[id] != stage || !is_read_later(id, stage)) continue;
      text += fmt::format("{} = {};\n",
                          in_workspace(expr::cuda_name(formula_[id].type), offset_of(id), "g"),
                          name(id));
    }
    return is_last ? text + store_results(false, "g") : text;
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
    start();
    const std::vector<NodeId> wanted = results(true);
    std::string body =
        places("i", std::nullopt) + fmt::format("const Place g = {};\n", group_of_places());
    body += statements(wanted, stages_, true) + statements(wanted, stages_, false);
    launch(body + store_results(true, "i"), space_.whole.elements());
  }

  const expr::Expression& formula_;
  const Space& space_;
  std::vector<bool> varies_, of_group_, is_declared_;  // by node
  std::vector<std::size_t> stage_;
  std::size_t stages_ = 0, numbers_ = 0;
  std::vector<JointAxis> axes_;
  std::int64_t groups_ = 1, group_ = 1;
  bool is_row_ = false, has_elements_ = false, is_whole_ = false;
  std::vector<std::int64_t> offsets_;  // of a group's values in the workspace, by node
  GroupLaunches made_;
};

}  // namespace

GroupLaunches launches_of_groups(const Elementwise& op) { return Writer(op).write(); }

}  // namespace arenite::codelets
