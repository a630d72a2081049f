#include "codelets/map/map_state.hpp"
#include "codelets/registry.hpp"
#include "src/base/element.hpp"
#include "src/expr/scalar.hpp"

#include <cstring>

namespace arenite::codelets {
namespace {

using expr::Code;
using expr::tile_elements;
using map::FoldStep;
using map::State;
using map::Step;
using map::SweepSteps;
using map::walk_of;

/// So many copies of one element.
void repeat(const void* from, std::byte* to, std::int64_t count, std::int64_t bytes) {
  const auto fill = [&]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    std::fill_n(reinterpret_cast<T*>(to), count, value);
  };
  if (bytes == 8) return fill(std::uint64_t{});
  if (bytes == 4) return fill(std::uint32_t{});
  fill(std::uint8_t{});
}

/// Of a worker's stack: what a map needs besides its values is best where the last one had it, in
/// the first cache. Long formulas have a workspace of their own.
constexpr std::int64_t most_on_stack = std::int64_t{48} << 10;

/// One execution: nothing of it outlives the call, and all that it needs lies in the workspace.
class Run {
 public:
  Run(const KernelCall& call, const State& state, void* workspace)
      : call_(call),
        state_(state),
        code_(state_.code),
        walk_(state_.walk),
        workspace_(static_cast<std::byte*>(workspace)),
        places_(reinterpret_cast<void**>(workspace_)),
        at_(reinterpret_cast<std::int64_t*>(workspace_ + state_.at)) {}

  void run() {
    if (!state_.is_empty) {
      begin();
      do {
        group();
      } while (go_on(walk_.groups, group_index_, walk_.groups.size() - state_.has_groups_at_once));
    }
    for (std::size_t r = 0; r < state_.images.size(); ++r) {
      if (!state_.images[r]) continue;
      with_element(state_.types[code_.operands + r], [&]<class T>(T) {
        zero_halo(static_cast<T*>(call_.results[r]), *state_.images[r]);
      });
    }
  }

 private:
  using Index = std::array<std::int64_t, Shape::max_rank>;

  std::size_t values() const { return code_.operands + code_.results; }
  std::int64_t bytes(std::size_t value) const { return size_of(state_.types[value]); }
  void*& place(std::size_t value) {
    return places_[value < code_.operands ? value : code_.result(value - code_.operands)];
  }
  std::byte* buffer(std::size_t value) { return workspace_ + state_.buffers[value]; }
  /// So many elements behind where the walk is.
  std::byte* here(std::size_t value, std::int64_t behind = 0) {
    auto* base = static_cast<std::byte*>(
        value < code_.operands ? call_.operands[value] : call_.results[value - code_.operands]);
    return base + (at_[value] + behind) * bytes(value);
  }

  /// What is the same in all tiles.
  void begin() {
    for (std::size_t i = 0; i < code_.splats; ++i) {
      places_[code_.splat(i)] =
          workspace_ + state_.splats + static_cast<std::int64_t>(i) * state_.splat_bytes;
    }
    for (std::size_t i = 0; i < code_.registers; ++i) {
      places_[code_.tile(i)] =
          workspace_ + state_.registers + static_cast<std::int64_t>(i) * state_.register_bytes;
    }
    for (const Code::Constant& constant : code_.constants) {
      // In a tile a boolean is a mask.
      const std::uint64_t payload =
          constant.type == expr::Type::boolean && constant.payload != 0 ? ~0ull : constant.payload;
      const std::int64_t size =
          constant.type == expr::Type::boolean ? 4 : expr::size_of(constant.type);
      repeat(&payload, static_cast<std::byte*>(places_[constant.place]),
             static_cast<std::int64_t>(code_.splat_elements), size);
    }
    std::ranges::copy(walk_.first, at_);
    for (std::size_t v = 0; v < values(); ++v) {
      place(v) = buffer(v);
      if (walk_.access[v] == Access::scalar) splat(v);
    }
    execute(state_.in_run, code_.splat_elements);
  }

  /// To the next place of the first axes; false: there is none, and all is where it began.
  bool go_on(const std::vector<Walk::Axis>& axes, Index& index, std::size_t count) {
    for (std::size_t left = count; left > 0; --left) {
      const Walk::Axis& axis = axes[left - 1];
      const bool more = ++index[left - 1] < axis.size;
      const std::int64_t steps = more ? 1 : 1 - axis.size;
      for (std::size_t v = 0; v < walk_.first.size(); ++v) at_[v] += steps * axis.step[v];
      if (more) return true;
      index[left - 1] = 0;
    }
    return false;
  }

  /// All sweeps over a group, or over those that lie side by side; of a map, all there is.
  void group() {
    row_ = walk_.row.size;
    if (walk_.all_in_row > 0)
      row_ = std::min(row_, walk_.all_in_row - group_index_[walk_.groups.size() - 1] * row_);
    for (std::size_t v = 0; v < code_.operands; ++v) {
      if (walk_.access[v] == Access::of_group) walk_.has_columns() ? columns(v) : splat(v);
    }
    if (state_.fused_groups) return fused_group();
    const std::size_t wide = walk_.has_columns()
                                 ? static_cast<std::size_t>(walk_.rows_in_tile * row_)
                                 : code_.splat_elements;
    execute(state_.in_group, wide);
    const bool has_elements = walk_.elements() > 0;
    for (std::size_t s = 0; s < state_.sweeps.size(); ++s) {
      sweep_ = &state_.sweeps[s];
      is_last_ = s + 1 == state_.sweeps.size();
      done_ = 0;
      for (const FoldStep& fold : sweep_->folds)
        fold.loops->begin(workspace_ + fold.totals, state_.places(row_));
      if (has_elements) {
        do {
          walk_.rows_in_tile > 1 ? some_rows() : one_row();
        } while (go_on(walk_.outer, index_, walk_.outer.size()));
      }
      for (const FoldStep& fold : sweep_->folds) finish(fold);
      execute(sweep_->behind, wide);
    }
    for (std::size_t v = code_.operands; v < values(); ++v) {
      if (walk_.access[v] == Access::of_group) scatter(v, 0, 1, walk_.has_columns() ? row_ : 1);
    }
  }

  void fused_group() {
    for (std::size_t v = 0; v < code_.operands; ++v) {
      if (walk_.access[v] == Access::direct) place(v) = here(v);
    }
    const expr::FusedGroups& fused = *state_.fused_groups;
    for (std::size_t v = code_.operands; v < values(); ++v) place(v) = here(v);
    const Walk::Axis& along = state_.has_groups_at_once ? walk_.groups.back() : walk_.rows;
    fused.loop({.groups = static_cast<std::size_t>(along.size),
                .steps = along.step.data(),
                .operands = places_,
                .splats = state_.splats_of_operands,
                .count = static_cast<std::size_t>(row_),
                .results = &places_[code_.result(0)],
                .kept = reinterpret_cast<float*>(workspace_ + state_.kept),
                .is_one = fused.is_one,
                .numbers = fused.numbers.data()});
  }

  void finish(const FoldStep& fold) {
    void* totals = workspace_ + fold.totals;
    auto* target = static_cast<std::byte*>(places_[fold.target]);
    if (walk_.has_columns()) {
      fold.loops->join(totals, state_.places(row_), static_cast<std::size_t>(row_));
      fold.loops->end(totals, static_cast<std::size_t>(row_), target);
      const std::int64_t row = row_ * fold.target_bytes;
      for (std::int64_t r = 1; r < walk_.rows_in_tile; ++r)
        std::memcpy(target + r * row, target, static_cast<std::size_t>(row));
      return;
    }
    fold.loops->join(totals, expr::fold_lanes, 1);
    std::uint64_t one = 0;
    fold.loops->end(totals, 1, &one);
    repeat(&one, target, static_cast<std::int64_t>(code_.splat_elements), fold.target_bytes);
  }

  void one_row() {
    for (std::size_t v = 0; v < code_.operands; ++v) {
      if (walk_.access[v] == Access::of_row) splat(v);
      if (walk_.is_copied(v)) gather(v, 0, 1);
    }
    execute(sweep_->in_row, code_.splat_elements);
    const std::int64_t most = state_.fused ? row_ : std::int64_t{tile_elements};
    for (std::int64_t from = 0; from < row_; from += most) {
      for (std::size_t v = 0; v < values(); ++v) {
        if (walk_.access[v] == Access::direct) place(v) = here(v, from);
      }
      tile(0, from, std::min(most, row_ - from));
    }
    scatter_all(0, 1);
  }

  void some_rows() {
    for (std::int64_t from = 0; from < walk_.rows.size; from += walk_.rows_in_tile) {
      const std::int64_t count = std::min(walk_.rows_in_tile, walk_.rows.size - from);
      for (std::size_t v = 0; v < values(); ++v) {
        const Access access = walk_.access[v];
        if (access == Access::direct) place(v) = here(v, from * walk_.rows.step[v]);
        if (v >= code_.operands) continue;
        // The first tile has as many rows as any.
        if (access == Access::by_row || (access == Access::periodic && from == 0))
          gather(v, from, count);
      }
      tile(from, 0, count * row_);
      scatter_all(from, count);
    }
  }

  /// From a row and a column on.
  void tile(std::int64_t row, std::int64_t column, std::int64_t count) {
    for (const Code::Index& index : code_.indices) {
      number(static_cast<std::int64_t*>(places_[index.place]), static_cast<std::size_t>(index.axis),
             row, column, count);
    }
    for (std::size_t i = 0; i < code_.kept; ++i) {
      places_[code_.kept_place(i)] = workspace_ + state_.kept +
                                     static_cast<std::int64_t>(i) * state_.kept_bytes +
                                     done_ * static_cast<std::int64_t>(code_.element_bytes);
    }
    if (state_.fused) {
      state_.fused.run(&places_[code_.result(0)], places_, state_.splats_of_operands,
                       static_cast<std::size_t>(count));
    } else {
      execute(sweep_->in_tile, static_cast<std::size_t>(count));
    }
    const std::int64_t in_group = walk_.has_columns() ? row_ : 1;
    for (const FoldStep& fold : sweep_->folds) {
      fold.loops->add(workspace_ + fold.totals, state_.places(row_), places_[fold.source],
                      static_cast<std::size_t>(count), done_ / in_group, in_group);
    }
    done_ += count;
  }

  void execute(const std::vector<Step>& steps, std::size_t count) {
    for (const Step& step : steps) {
      const void* sources[4];
      for (int i = 0; i < step.sources; ++i)
        sources[i] = places_[step.from[static_cast<std::size_t>(i)]];
      step.loop(places_[step.target], sources, count);
    }
  }

  void splat(std::size_t value) {
    repeat(here(value), buffer(value), static_cast<std::int64_t>(code_.splat_elements),
           bytes(value));
  }

  /// What is one for each of the groups side by side, for as many rows as a tile has.
  void columns(std::size_t value) {
    gather(value, 0, 1);
    const std::int64_t row = row_ * bytes(value);
    for (std::int64_t r = 1; r < walk_.rows_in_tile; ++r)
      std::memcpy(buffer(value) + r * row, buffer(value), static_cast<std::size_t>(row));
  }

  void gather(std::size_t value, std::int64_t first, std::int64_t count) {
    const std::int64_t size = bytes(value), row = row_ * size, step = walk_.row.step[value];
    std::byte* to = buffer(value);
    for (std::int64_t r = first; r < first + count; ++r, to += row) {
      const std::byte* from = here(value, r * walk_.rows.step[value]);
      if (step == 0) {
        repeat(from, to, row_, size);
      } else if (step == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(row));
      } else {
        with_element(state_.types[value], [&]<class T>(T) {
          for (std::int64_t i = 0; i < row_; ++i)
            reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(from)[i * step];
        });
      }
    }
  }

  /// Results that tiles make elsewhere, of the last sweep.
  void scatter_all(std::int64_t first, std::int64_t count) {
    for (std::size_t v = code_.operands; is_last_ && v < values(); ++v) {
      if (walk_.access[v] == Access::by_row) scatter(v, first, count, row_);
    }
  }

  void scatter(std::size_t value, std::int64_t first, std::int64_t count, std::int64_t elements) {
    const std::int64_t size = bytes(value), step = walk_.row.step[value];
    const std::byte* from = buffer(value);
    for (std::int64_t r = first; r < first + count; ++r, from += elements * size) {
      std::byte* to = here(value, r * walk_.rows.step[value]);
      if (step <= 1) {
        std::memcpy(to, from, static_cast<std::size_t>(elements * size));
      } else {
        with_element(state_.types[value], [&]<class T>(T) {
          for (std::int64_t i = 0; i < elements; ++i)
            reinterpret_cast<T*>(to)[i * step] = reinterpret_cast<const T*>(from)[i];
        });
      }
    }
  }

  /// The places of a tile's elements along an axis.
  void number(std::int64_t* to, std::size_t axis, std::int64_t row, std::int64_t column,
              std::int64_t count) const {
    const std::size_t numbers = walk_.first.size() - 1;
    const std::int64_t step = state_.axis_step[axis], size = state_.axis_size[axis],
                       down = walk_.rows.step[numbers], right = walk_.row.step[numbers];
    const std::int64_t first = at_[numbers] + row * down + column * right;
    if (right == 1 && (down == row_ || count <= row_)) {  // one behind the other
      std::int64_t within = first % step, place = first / step % size;
      while (count > 0) {
        const std::int64_t run = std::min(step == 1 ? size - place : step - within, count);
        for (std::int64_t i = 0; i < run; ++i) to[i] = step == 1 ? place + i : place;
        to += run;
        count -= run;
        within = 0;
        place = step == 1 || place + 1 == size ? 0 : place + 1;
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = (first + i / row_ * down + i % row_ * right) / step % size;
  }

  const KernelCall& call_;
  const State& state_;
  const Code& code_;
  const Walk& walk_;
  std::byte* workspace_;
  void** places_;
  std::int64_t* at_;  // by value: elements before the one where the walk is
  Index group_index_{}, index_{};
  std::int64_t row_ = 1, done_ = 0;  // elements of a row, and those that a sweep has done
  const SweepSteps* sweep_ = nullptr;
  bool is_last_ = true;
};

/// Nothing is gone through but the loop; what is one for all is repeated for a vector.
void in_one_loop(const KernelCall& call, const State& state) {
  const void* operands[map::most_in_one_loop];
  float same[map::most_in_one_loop][16];
  for (std::size_t i = 0; i < state.code.operands; ++i) {
    operands[i] = call.operands[i];
    if ((state.splats_of_operands >> i & 1) == 0) continue;
    std::fill_n(same[i], 16, *static_cast<const float*>(operands[i]));
    operands[i] = same[i];
  }
  state.fused.run(call.results, operands, state.splats_of_operands,
                  static_cast<std::size_t>(state.walk.row.size));
}

void run(const KernelCall& call, const State& state) {
  if (state.is_one_loop) return in_one_loop(call, state);
  if (state.workspace > most_on_stack) return Run(call, state, call.workspace).run();
  alignas(64) std::byte scratch[most_on_stack];
  Run(call, state, scratch).run();
}

template <bool is_fused>
std::int64_t workspace_of(const OpView& op) {
  const std::int64_t needed = State(op, is_fused, false).workspace;
  return needed > most_on_stack ? needed : 0;
}

template <bool is_fused>
State state_of(const OpView& op) {
  return State(op, is_fused, true);
}

int any_halo_will_do(const OpView&, std::size_t) { return 0; }

/// A group is a row, of which loops read all that is not one for it where it lies.
bool has_rows(const Walk& walk) {
  return !walk.has_columns() && walk.outer.empty() && walk.rows.size == 1 && walk.elements() > 0 &&
         std::ranges::none_of(walk.access, [](Access access) {
           return access == Access::by_row || access == Access::periodic;
         });
}

graph::Support is_fused(const OpView& op) {
  const Elementwise of(op);
  if (of.formula.reduces()) {
    if (!expr::find_fused_groups(of.formula)) return "a formula that has no loops of its own";
    if (!has_rows(walk_of(of))) return "groups whose elements are no rows";
  } else if (!expr::find_fused(of.formula)) {
    return "a formula that has no loop of its own";
  }
  return {};
}

}  // namespace

std::vector<Kernel> map_kernels() {
  return {{.name = "fused",
           .supports = is_fused,
           .workspace = workspace_of<true>,
           .prepare = prepare<state_of<true>, run>,
           .wanted_halo = any_halo_will_do,
           .writes_halo = true},
          {.name = "tiles",
           .workspace = workspace_of<false>,
           .prepare = prepare<state_of<false>, run>,
           .wanted_halo = any_halo_will_do,
           .writes_halo = true}};
}

}  // namespace arenite::codelets
