#include "codelets/map/map.hpp"
#include "codelets/map/walk.hpp"
#include "codelets/registry.hpp"
#include "src/base/element.hpp"
#include "src/expr/scalar.hpp"
#include "src/expr/simd/fused.hpp"
#include "src/expr/simd/loops.hpp"

#include <cstring>
#include <numeric>

namespace arenite::codelets {
namespace {

using expr::Code;
using expr::Place;
using expr::Reach;
using expr::tile_elements;

/// An instruction with its loop.
struct Step {
  expr::Loop loop;
  int sources;
  Place target;
  std::array<Place, 4> from;
};

std::vector<Step> steps_of(const std::vector<expr::Instruction>& instructions) {
  std::vector<Step> steps;
  for (const expr::Instruction& one : instructions)
    steps.push_back({expr::find_loop(one), source_count(one), one.target, one.sources});
  return steps;
}

struct State {
  Code code;
  Walk walk;
  expr::FusedLoop fused = nullptr;  ///< does all at once, in place of instructions
  std::uint64_t splats_of_operands = 0;
  std::vector<Step> in_run, in_row, in_tile;
  std::vector<DType> types;                        ///< by value: operands, then results
  std::vector<std::optional<Image>> images;        ///< by result: of those with a halo
  std::vector<std::int64_t> axis_size, axis_step;  ///< of the results
  std::size_t most_registers = 0;                  ///< whatever lies in place
  bool is_empty = false;
  bool is_one_loop = false;  ///< over all values, each from where it begins
  // Where things lie in the workspace, in bytes: the places' addresses are its first.
  std::int64_t starts = 0, splats = 0, registers = 0, workspace = 0;
  std::int64_t splat_bytes = 0, register_bytes = 0;
  std::vector<std::int64_t> buffers;  ///< by value: of those that are not direct

  /// `is_placed`: it is known what lies where, as it is not when the workspace is asked for.
  State(const OpView& op, bool is_fused, bool is_placed);

 private:
  bool runs_in_one_loop() const;
  std::int64_t take(std::int64_t bytes);
  void lay_out();
};

/// Operands in whose bytes each result lies.
std::vector<std::vector<std::size_t>> overwritten(const OpView& op) {
  std::vector<std::vector<std::size_t>> all(op.op().results.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      const graph::Graph& graph = op.graph();
      if (graph.root(op.result(r).storage) == graph.root(op.operand(i).storage))
        all[r].push_back(i);
    }
  }
  return all;
}

Code code_of(const OpView& op, const Walk& walk,
             const std::vector<std::vector<std::size_t>>& overwrites) {
  std::vector<Reach> reach;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    reach.push_back(walk.access[i] == Access::scalar   ? Reach::run
                    : walk.access[i] == Access::of_row ? Reach::row
                                                       : Reach::element);
  }
  return expr::lower(formula_of(op), reach, overwrites);
}

/// Each result in place of all operands: what needs the most registers.
std::vector<std::vector<std::size_t>> all_overwritten(const OpView& op) {
  std::vector<std::size_t> operands(op.operand_count());
  std::iota(operands.begin(), operands.end(), std::size_t{0});
  return std::vector(op.op().results.size(), operands);
}

State::State(const OpView& op, bool is_fused, bool is_placed)
    : walk(operands_of(op), results_of(op)), is_empty(op.result(0).shape.elements() == 0) {
  code = code_of(op, walk, all_overwritten(op));
  most_registers = code.registers;
  if (is_placed && !is_fused) code = code_of(op, walk, overwritten(op));
  if (is_fused) {
    fused = expr::find_fused(formula_of(op));
    code.constants.clear();  // it has its own
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      const bool is_splat = walk.access[i] == Access::scalar || walk.access[i] == Access::of_row;
      splats_of_operands |= std::uint64_t{is_splat} << i;
    }
  } else {
    in_run = steps_of(code.in_run);
    in_row = steps_of(code.in_row);
    in_tile = steps_of(code.in_tile);
  }
  for (const graph::Value* value : operands_of(op)) types.push_back(value->type);
  for (const graph::Value* value : results_of(op)) {
    types.push_back(value->type);
    images.emplace_back();
    if (value->layout.halo > 0) images.back().emplace(*value);
  }
  const Shape& shape = op.result(0).shape;
  std::int64_t step = 1;
  for (int i = shape.rank(); i-- > 0; step *= shape[i]) {
    axis_size.insert(axis_size.begin(), shape[i]);
    axis_step.insert(axis_step.begin(), step);
  }
  is_one_loop = runs_in_one_loop();
  lay_out();
}

bool State::runs_in_one_loop() const {
  const auto is_direct = [](Access access) { return access == Access::direct; };
  return fused != nullptr && !is_empty && code.indices.empty() && walk.outer.empty() &&
         walk.rows_in_tile == 1 && std::ranges::all_of(walk.access, is_direct) &&
         std::ranges::none_of(images, [](const auto& image) { return image.has_value(); }) &&
         std::ranges::all_of(walk.first, [](std::int64_t first) { return first == 0; });
}

/// Lines of the cache, with one between, so that equal places of tiles are not a page apart.
std::int64_t State::take(std::int64_t bytes) {
  constexpr std::int64_t line = 64;
  const std::int64_t at = workspace;
  workspace += round_up(bytes, line) + line;
  return at;
}

void State::lay_out() {
  constexpr auto tile = static_cast<std::int64_t>(tile_elements), line = std::int64_t{64};
  const auto widest = static_cast<std::int64_t>(code.element_bytes);
  splat_bytes = static_cast<std::int64_t>(code.splat_elements) * widest;
  register_bytes = tile * widest + line;
  take(
      static_cast<std::int64_t>((code.places() + most_registers - code.registers) * sizeof(void*)));
  starts = take(static_cast<std::int64_t>(types.size() * sizeof(void*)));
  splats = take(static_cast<std::int64_t>(code.splats) * splat_bytes);
  registers = take(static_cast<std::int64_t>(most_registers) * register_bytes);
  for (std::size_t v = 0; v < types.size(); ++v) {
    const Access access = walk.access[v];
    const bool is_splat = access == Access::scalar || access == Access::of_row;
    buffers.push_back(access == Access::direct ? 0 : take(is_splat ? splat_bytes : tile * widest));
  }
}

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
        starts_(reinterpret_cast<std::byte**>(workspace_ + state_.starts)) {}

  void run() {
    if (!state_.is_empty) {
      begin();
      do {
        walk_.rows_in_tile > 1 ? some_rows() : one_row();
      } while (go_on());
    }
    for (std::size_t r = 0; r < state_.images.size(); ++r) {
      if (!state_.images[r]) continue;
      with_element(state_.types[code_.operands + r], [&]<class T>(T) {
        zero_halo(static_cast<T*>(call_.results[r]), *state_.images[r]);
      });
    }
  }

 private:
  std::size_t values() const { return code_.operands + code_.results; }
  std::int64_t bytes(std::size_t value) const { return size_of(state_.types[value]); }
  void*& place(std::size_t value) {
    return places_[value < code_.operands ? value : code_.result(value - code_.operands)];
  }
  std::byte* buffer(std::size_t value) { return workspace_ + state_.buffers[value]; }

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
    for (std::size_t v = 0; v < values(); ++v) {
      auto* base = static_cast<std::byte*>(v < code_.operands ? call_.operands[v]
                                                              : call_.results[v - code_.operands]);
      starts_[v] = base + walk_.first[v] * bytes(v);
      place(v) = buffer(v);
      if (walk_.access[v] == Access::scalar) splat(v, starts_[v]);
    }
    execute(state_.in_run, code_.splat_elements);
  }

  /// To the next place of the outer axes; false: there is none.
  bool go_on() {
    for (std::size_t left = walk_.outer.size(); left > 0; --left) {
      const Walk::Axis& axis = walk_.outer[left - 1];
      const bool more = ++index_[left - 1] < axis.size;
      const std::int64_t steps = more ? 1 : 1 - axis.size;
      for (std::size_t v = 0; v < values(); ++v) starts_[v] += steps * axis.step[v] * bytes(v);
      if (more) return true;
      index_[left - 1] = 0;
    }
    return false;
  }

  void one_row() {
    for (std::size_t v = 0; v < code_.operands; ++v) {
      if (walk_.access[v] == Access::of_row) splat(v, starts_[v]);
    }
    execute(state_.in_row, code_.splat_elements);
    const std::int64_t most = state_.fused ? walk_.row.size : std::int64_t{tile_elements};
    for (std::int64_t from = 0; from < walk_.row.size; from += most) {
      for (std::size_t v = 0; v < values(); ++v) {
        if (walk_.access[v] == Access::direct) place(v) = starts_[v] + from * bytes(v);
      }
      tile(std::min(most, walk_.row.size - from));
    }
  }

  void some_rows() {
    for (std::int64_t from = 0; from < walk_.rows.size; from += walk_.rows_in_tile) {
      const std::int64_t count = std::min(walk_.rows_in_tile, walk_.rows.size - from);
      for (std::size_t v = 0; v < values(); ++v) {
        const Access access = walk_.access[v];
        std::byte* at = starts_[v] + from * walk_.rows.step[v] * bytes(v);
        if (access == Access::direct) place(v) = at;
        if (v >= code_.operands) continue;
        // The first tile has as many rows as any.
        if (access == Access::by_row || (access == Access::periodic && from == 0))
          gather(v, at, count);
      }
      tile(count * walk_.row.size);
      for (std::size_t v = code_.operands; v < values(); ++v) {
        if (walk_.access[v] == Access::by_row)
          scatter(v, starts_[v] + from * walk_.rows.step[v] * bytes(v), count);
      }
    }
  }

  void tile(std::int64_t count) {
    for (const Code::Index& index : code_.indices)
      number(static_cast<std::int64_t*>(places_[index.place]), static_cast<std::size_t>(index.axis),
             count);
    if (state_.fused) {
      state_.fused(places_[code_.result(0)], places_, state_.splats_of_operands,
                   static_cast<std::size_t>(count));
    } else {
      execute(state_.in_tile, static_cast<std::size_t>(count));
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

  void splat(std::size_t value, const std::byte* from) {
    repeat(from, buffer(value), static_cast<std::int64_t>(code_.splat_elements), bytes(value));
  }

  void gather(std::size_t value, const std::byte* from, std::int64_t count) {
    const std::int64_t size = bytes(value), row = walk_.row.size * size;
    std::byte* to = buffer(value);
    for (std::int64_t r = 0; r < count; ++r, to += row, from += walk_.rows.step[value] * size) {
      if (walk_.row.step[value] == 0) {
        repeat(from, to, walk_.row.size, size);
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(row));
      }
    }
  }

  void scatter(std::size_t value, std::byte* to, std::int64_t count) {
    const std::int64_t size = bytes(value), row = walk_.row.size * size;
    const std::byte* from = buffer(value);
    for (std::int64_t r = 0; r < count; ++r, from += row, to += walk_.rows.step[value] * size)
      std::memcpy(to, from, static_cast<std::size_t>(row));
  }

  /// The places of a tile's elements along an axis of the results.
  void number(std::int64_t* to, std::size_t axis, std::int64_t count) const {
    const std::int64_t step = state_.axis_step[axis], size = state_.axis_size[axis];
    std::int64_t within = done_ % step, at = done_ / step % size;
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = at;
      if (++within < step) continue;
      within = 0;
      at = at + 1 < size ? at + 1 : 0;
    }
  }

  const KernelCall& call_;
  const State& state_;
  const Code& code_;
  const Walk& walk_;
  std::byte* workspace_;
  void** places_;
  std::byte** starts_;  // by value: the first element at this place of the outer axes
  std::array<std::int64_t, Shape::max_rank> index_{};
  std::int64_t done_ = 0;  // elements of the results
};

void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  if (state.is_one_loop) {
    return state.fused(call.results[0], call.operands, 0,
                       static_cast<std::size_t>(state.walk.row.size));
  }
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

graph::Support is_fused(const OpView& op) {
  if (expr::find_fused(formula_of(op)) == nullptr) return "a formula that has no loop of its own";
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
