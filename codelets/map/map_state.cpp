#include "codelets/map/map_state.hpp"

#include <algorithm>
#include <numeric>

namespace arenite::codelets::map {
namespace {

using expr::Code;
using expr::Reach;
using expr::tile_elements;

/// Groups of more elements have nothing kept for the next sweep.
constexpr std::int64_t most_kept = std::int64_t{1} << 16;

std::vector<Step> steps_of(const std::vector<expr::Instruction>& instructions) {
  std::vector<Step> steps;
  for (const expr::Instruction& one : instructions)
    steps.push_back({expr::find_loop(one), source_count(one), one.target, one.sources});
  return steps;
}

/// Operands in whose bytes each result lies.
std::vector<std::vector<std::size_t>> overwritten(const OpView& op, std::size_t operands) {
  std::vector<std::vector<std::size_t>> all(op.op().results.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t i = 0; i < operands; ++i) {
      const graph::Graph& graph = op.graph();
      if (graph.root(op.result(r).storage) == graph.root(op.operand(i).storage))
        all[r].push_back(i);
    }
  }
  return all;
}

Code code_of(const Elementwise& of, const Walk& walk,
             const std::vector<std::vector<std::size_t>>& overwrites) {
  std::vector<Reach> reach;
  for (std::size_t i = 0; i < of.formula.operands().size(); ++i) {
    reach.push_back(walk.access[i] == Access::scalar     ? Reach::run
                    : walk.access[i] == Access::of_group ? Reach::group
                    : walk.access[i] == Access::of_row   ? Reach::row
                                                         : Reach::element);
  }
  return expr::lower(
      of.formula, reach, overwrites,
      {.groups = walk.lie, .group = of.space.group(), .keeps = walk.elements() <= most_kept});
}

/// Each result in place of all operands: what needs the most registers.
std::vector<std::vector<std::size_t>> all_overwritten(const expr::Expression& formula) {
  std::vector<std::size_t> operands(formula.operands().size());
  std::iota(operands.begin(), operands.end(), std::size_t{0});
  return std::vector(formula.results().size(), operands);
}

}  // namespace

Walk walk_of(const Elementwise& of) {
  std::vector<Seen> values = of.values;
  graph::Value numbers;
  numbers.shape = of.space.whole;
  const bool has_index = std::ranges::any_of(of.formula.nodes(), [](const expr::Node& node) {
    return node.function == expr::Function::index;
  });
  if (has_index) values.push_back({&numbers});
  return {values, of.formula.operands().size(), of.space};
}

State::State(const OpView& op, bool is_fused, bool is_placed) : of(op), walk(walk_of(of)) {
  code = code_of(of, walk, all_overwritten(of.formula));
  most_registers = code.registers;
  if (is_placed && !is_fused) code = code_of(of, walk, overwritten(op, code.operands));
  if (is_fused) {
    if (of.formula.reduces()) {
      fused_groups = expr::find_fused_groups(of.formula);
      code.kept = fused_groups->kept;
    } else {
      fused = expr::find_fused(of.formula);
    }
    code.constants.clear();  // it has its own
    for (std::size_t i = 0; i < code.operands; ++i) {
      const Access access = walk.access[i];
      const bool is_splat =
          access == Access::scalar || access == Access::of_row || access == Access::of_group;
      splats_of_operands |= std::uint64_t{is_splat} << i;
    }
    // What is one for each group is repeated before each.
    has_groups_at_once = fused_groups && !walk.groups.empty() &&
                         std::none_of(walk.access.begin(), walk.access.begin() + code.operands,
                                      [](Access access) { return access == Access::of_group; });
  }
  for (std::size_t i = 0; i < code.operands; ++i) types.push_back(op.operand(i).type);
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    const graph::Value& result = op.result(i);
    types.push_back(result.type);
    images.emplace_back();
    if (result.layout.halo > 0) images.back().emplace(result);
    is_empty = (i == 0 || is_empty) && result.shape.elements() == 0;
  }
  std::int64_t step = 1;
  for (int i = of.space.whole.rank(); i-- > 0; step *= of.space.whole[i]) {
    axis_size.insert(axis_size.begin(), of.space.whole[i]);
    axis_step.insert(axis_step.begin(), step);
  }
  is_one_loop = runs_in_one_loop();
  lay_out();
}

bool State::runs_in_one_loop() const {
  // Results lie behind operands, and are none but direct.
  const auto is_read = [](Access access) {
    return access == Access::direct || access == Access::scalar;
  };
  return fused && !is_empty && code.indices.empty() && walk.outer.empty() &&
         walk.rows_in_tile == 1 && code.operands <= most_in_one_loop &&
         std::ranges::all_of(walk.access, is_read) &&
         std::ranges::none_of(images, [](const auto& image) { return image.has_value(); }) &&
         std::ranges::all_of(walk.first, [](std::int64_t first) { return first == 0; });
}

/// Lines of the cache, with one between, so that equal places of tiles are not a page apart.
std::int64_t State::take(std::int64_t bytes) {
  constexpr std::int64_t line = 64;
  const std::int64_t place = workspace;
  workspace += round_up(bytes, line) + line;
  return place;
}

void State::lay_out() {
  constexpr std::int64_t line = 64;
  // No more elements than there are, but as many as whole loops read of what is the same for all.
  constexpr std::int64_t least = 16;
  const std::int64_t tile = std::clamp<std::int64_t>(
      round_up(walk.rows_in_tile * walk.row.size, least), least, tile_elements);
  code.splat_elements = std::min(code.splat_elements, static_cast<std::size_t>(tile));
  const auto widest = static_cast<std::int64_t>(code.element_bytes);
  splat_bytes = static_cast<std::int64_t>(code.splat_elements) * widest;
  register_bytes = tile * widest + line;
  take(
      static_cast<std::int64_t>((code.places() + most_registers - code.registers) * sizeof(void*)));
  at = take(static_cast<std::int64_t>(walk.first.size() * sizeof(std::int64_t)));
  splats = take(static_cast<std::int64_t>(code.splats) * splat_bytes);
  registers = take(static_cast<std::int64_t>(most_registers) * register_bytes);
  kept_bytes = code.kept > 0 ? round_up(walk.elements() * widest, line) : 0;
  kept = take(static_cast<std::int64_t>(code.kept) * kept_bytes);
  for (std::size_t v = 0; v < types.size(); ++v) {
    const Access access = walk.access[v];
    const bool is_splat = access == Access::scalar || access == Access::of_row ||
                          (access == Access::of_group && !walk.has_columns());
    buffers.push_back(access == Access::direct ? 0 : take(is_splat ? splat_bytes : tile * widest));
  }
  if (fused_groups) return;
  in_run = fused ? std::vector<Step>{} : steps_of(code.in_run);
  in_group = steps_of(code.in_group);
  for (const expr::Sweep& sweep : code.sweeps) {
    SweepSteps made{.in_row = fused ? std::vector<Step>{} : steps_of(sweep.in_row),
                    .in_tile = fused ? std::vector<Step>{} : steps_of(sweep.in_tile),
                    .behind = steps_of(sweep.behind),
                    .folds = {}};
    for (const expr::Fold& fold : sweep.folds) {
      const bool is_place = fold.function == expr::Function::first_least ||
                            fold.function == expr::Function::first_greatest;
      const std::int64_t bytes = is_place                           ? 8
                                 : fold.type == expr::Type::boolean ? 4
                                                                    : expr::size_of(fold.type);
      made.folds.push_back({.loops = &expr::fold_loops(fold.function, fold.type),
                            .source = fold.source,
                            .target = fold.target,
                            .target_bytes = bytes,
                            .totals = take(static_cast<std::int64_t>(
                                fold_bytes(fold.function, places(walk.row.size))))});
    }
    sweeps.push_back(std::move(made));
  }
}

}  // namespace arenite::codelets::map
