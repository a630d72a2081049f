// What the kernels of maps and reductions for CPUs know of an op: its instructions with their
// loops, how its values are gone through, and where all of it lies in the workspace.
#pragma once

#include "codelets/image.hpp"
#include "codelets/map/map.hpp"
#include "codelets/map/walk.hpp"
#include "src/expr/code.hpp"
#include "src/expr/simd/folds.hpp"
#include "src/expr/simd/fused.hpp"
#include "src/expr/simd/fused_groups.hpp"
#include "src/expr/simd/loops.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace arenite::codelets::map {

/// An instruction with its loop.
struct Step {
  expr::Loop loop;
  int sources;
  expr::Place target;
  std::array<expr::Place, 4> from;
};

struct FoldStep {
  const expr::FoldLoops* loops;
  expr::Place source, target;
  std::int64_t target_bytes;  ///< of one value there
  std::int64_t totals;        ///< in the workspace
};

struct SweepSteps {
  std::vector<Step> in_row, in_tile, behind;
  std::vector<FoldStep> folds;
};

/// Operands of what is_one_loop.
inline constexpr std::size_t most_in_one_loop = 8;

struct State {
  Elementwise of;
  Walk walk;  ///< of operands, results and, where indices are asked for, the elements' numbers
  expr::Code code;
  expr::Fused fused;                              ///< does all at once, in place of instructions
  std::optional<expr::FusedGroups> fused_groups;  ///< the same for a group
  bool has_groups_at_once = false;                ///< its loop does those along their last axis
  std::uint64_t splats_of_operands = 0;
  std::vector<Step> in_run, in_group;
  std::vector<SweepSteps> sweeps;
  std::vector<DType> types;                        ///< by value: operands, then results
  std::vector<std::optional<Image>> images;        ///< by result: of those with a halo
  std::vector<std::int64_t> axis_size, axis_step;  ///< of all elements
  std::size_t most_registers = 0;                  ///< whatever lies in place
  bool is_empty = false;
  bool is_one_loop = false;  ///< over all values, each from where it begins
  // Where things lie in the workspace, in bytes: the places' addresses are its first.
  std::int64_t at = 0, splats = 0, registers = 0, kept = 0, workspace = 0;
  std::int64_t splat_bytes = 0, register_bytes = 0, kept_bytes = 0;
  std::vector<std::int64_t> buffers;  ///< by value: of those that are not direct

  /// `is_placed`: it is known what lies where, as it is not when the workspace is asked for.
  State(const OpView& op, bool is_fused, bool is_placed);

  /// Of a fold, of which `row` groups lie side by side: as many for each as its size says.
  std::size_t places(std::int64_t row) const noexcept {
    if (!walk.has_columns()) return expr::fold_lanes;
    constexpr std::int64_t many = 64, at_once = 4;
    return static_cast<std::size_t>(of.space.group() < many ? row : at_once * row);
  }

 private:
  bool runs_in_one_loop() const;
  std::int64_t take(std::int64_t bytes);
  void lay_out();
};

/// How an op's values are gone through.
Walk walk_of(const Elementwise& of);

}  // namespace arenite::codelets::map
