// Filled polygons on a small square canvas, in integers only: the same bytes on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace arenite::data {

struct Point {
  int x = 0;
  int y = 0;
};

using Polygon = std::vector<Point>;

/// From the drawing board (0…256 both ways, y down) to the canvas, in 1/256 pixel:
/// about the board's middle, then shifted.
struct Affine {
  int xx = 0, xy = 0, yx = 0, yy = 0;  ///< in 1/256 canvas units a board unit
  int shift_x = 0, shift_y = 0;        ///< where the board's middle comes to lie, in 1/256 pixel

  Point operator()(Point board) const noexcept;
};

inline constexpr int full_coverage = 1024;  ///< a pixel wholly inside a polygon

/// How much of every pixel of a canvas of `size`×`size` lies inside the polygon (even-odd rule),
/// 0…`full_coverage`; canvas coordinates.
std::vector<std::int32_t> coverage(const Polygon& polygon, int size);

}  // namespace arenite::data
