// An expression as instructions for tiles: short runs of elements that fit into the first cache. An
// instruction does one function for all of a tile; what is the same for a whole run or row is done
// once for that.
#pragma once

#include <arenite/expr/expression.hpp>

#include <vector>

namespace arenite::expr {

/// Elements of a tile: three or four of them fit into the first cache.
inline constexpr std::size_t tile_elements = 512;

/// For how many elements one value of an operand goes.
enum class Reach : std::uint8_t {
  run,      ///< all: a scalar
  row,      ///< those of a row
  element,  ///< one
};

/// A place that instructions read and write, in this order: operands, splats, registers, results.
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

  std::size_t operands = 0, splats = 0, registers = 0, results = 0;
  std::size_t element_bytes = 4;  ///< of the widest value in a splat or register
  /// A splat holds its value so often: what is read behind it, too. Loops of float32 hold one
  /// vector of it, others read a tile.
  std::size_t splat_elements = 16;
  std::vector<Constant> constants;
  std::vector<Index> indices;  ///< in registers that nothing else writes
  std::vector<Instruction> in_run, in_row, in_tile;

  std::size_t places() const noexcept { return operands + splats + registers + results; }
  Place splat(std::size_t i) const noexcept { return static_cast<Place>(operands + i); }
  Place tile(std::size_t i) const noexcept { return static_cast<Place>(operands + splats + i); }
  Place result(std::size_t i) const noexcept {
    return static_cast<Place>(operands + splats + registers + i);
  }
};

/// `reach` is by operand. `overwrites[i]` are the operands in whose bytes result i lies.
Code lower(const Expression& expression, std::span<const Reach> reach,
           std::span<const std::vector<std::size_t>> overwrites);

}  // namespace arenite::expr
