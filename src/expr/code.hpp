// An expression as instructions for tiles: short runs of elements that fit into the first cache. An
// instruction does one function for all of a tile; what is the same for a whole run or row is done
// once for that.
#pragma once

#include <arenite/expr/expression.hpp>

#include <vector>

namespace arenite::expr {

/// Elements of a tile: three or four of them fit into the first cache.
inline constexpr std::size_t tile_elements = 512;

/// For how many elements one value goes.
enum class Reach : std::uint8_t {
  run,      ///< all: a scalar
  group,    ///< those that are reduced together
  row,      ///< those of a row of a group, or of a map
  element,  ///< one
};

/// How groups lie in tiles.
enum class Groups : std::uint8_t {
  rows,     ///< a tile is of one: what is one for a group is a splat
  columns,  ///< a tile is of several, side by side: what is one for each is a tile, too
};

/// A place that instructions read and write, in this order: operands, splats, registers, what is
/// kept from one sweep to the next, results.
using Place = std::uint32_t;

struct Instruction {
  Function function = Function::constant;  ///< `operand`: it copies
  Type from = Type::float32;               ///< of the sources, but a select's condition
  Type to = Type::float32;                 ///< of what it makes
  /// Of a select whose condition nobody else reads: the sources are the comparison's two and the
  /// select's two, all of one type. Else `constant`.
  Function comparison = Function::constant;
  std::uint8_t splats = 0;  ///< bit i: source i is a splat
  Place target = 0;
  std::array<Place, 4> sources{};
};

/// How many sources it has.
int source_count(const Instruction& instruction) noexcept;

/// Makes one value for a group of a place's values: they are gathered in a total, tile by tile.
struct Fold {
  Function function = Function::sum;
  Type type = Type::float32;  ///< of the values
  Place source = 0, target = 0;
};

/// All tiles of a group.
struct Sweep {
  std::vector<Instruction> in_row, in_tile;
  std::vector<Fold> folds;
  std::vector<Instruction> behind;  ///< of what it made, once for the group
};

struct Code {
  struct Constant {
    Place place;
    Type type;
    std::uint64_t payload;
  };
  /// An element's place along an axis of the results, in a tile that whoever runs the code fills.
  struct Index {
    Place place;
    int axis;
  };

  std::size_t operands = 0, splats = 0, registers = 0, kept = 0, results = 0;
  std::size_t element_bytes = 4;  ///< of the widest value in a splat or register
  /// A splat holds its value so often: what is read behind it, too. Loops of float32 hold one
  /// vector of it, others read a tile.
  std::size_t splat_elements = 16;
  std::vector<Constant> constants;
  std::vector<Index> indices;                 ///< in registers that nothing else writes
  std::vector<Instruction> in_run, in_group;  ///< before the sweeps
  std::vector<Sweep> sweeps;                  ///< one after the other; of a map, one

  std::size_t places() const noexcept { return operands + splats + registers + kept + results; }
  Place splat(std::size_t i) const noexcept { return static_cast<Place>(operands + i); }
  Place tile(std::size_t i) const noexcept { return static_cast<Place>(operands + splats + i); }
  Place kept_place(std::size_t i) const noexcept {
    return static_cast<Place>(operands + splats + registers + i);
  }
  Place result(std::size_t i) const noexcept {
    return static_cast<Place>(operands + splats + registers + kept + i);
  }
};

struct Lowered {
  Groups groups = Groups::rows;
  std::int64_t group = 1;  ///< elements of one, which is what `count()` is
  /// What several sweeps read and what is not cheap is kept: else it is made again.
  bool keeps = true;
};

/// `reach` is by operand. `overwrites[i]` are the operands in whose bytes result i lies.
Code lower(const Expression& expression, std::span<const Reach> reach,
           std::span<const std::vector<std::size_t>> overwrites, const Lowered& as);

}  // namespace arenite::expr
