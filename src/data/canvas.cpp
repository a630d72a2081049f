#include "src/data/canvas.hpp"

#include <algorithm>

namespace arenite::data {
namespace {

constexpr int pixel = 256;
constexpr int rows_a_pixel = 4;  // scan lines; horizontally coverage is exact

// Adds what the stretch [from, to) of one scan line covers of each pixel of a row.
void add_stretch(std::int32_t* row, int size, int from, int to) {
  from = std::clamp(from, 0, size * pixel);
  to = std::clamp(to, 0, size * pixel);
  for (int x = from / pixel; x * pixel < to; ++x) {
    row[x] += std::min(to, (x + 1) * pixel) - std::max(from, x * pixel);
  }
}

}  // namespace

Point Affine::operator()(Point board) const noexcept {
  const int dx = board.x - 128;
  const int dy = board.y - 128;
  return {shift_x + (xx * dx + xy * dy) / 256, shift_y + (yx * dx + yy * dy) / 256};
}

std::vector<std::int32_t> coverage(const Polygon& polygon, int size) {
  static_assert(pixel * rows_a_pixel == full_coverage);
  std::vector<std::int32_t> result(static_cast<std::size_t>(size * size));
  std::vector<int> crossings;
  for (int line = 0; line < size * rows_a_pixel; ++line) {
    const int y = line * (pixel / rows_a_pixel) + pixel / rows_a_pixel / 2;
    crossings.clear();
    Point last = polygon.back();
    for (const Point& point : polygon) {
      if ((last.y <= y) != (point.y <= y)) {
        crossings.push_back(last.x + (y - last.y) * (point.x - last.x) / (point.y - last.y));
      }
      last = point;
    }
    std::ranges::sort(crossings);
    for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
      add_stretch(result.data() + line / rows_a_pixel * size, size, crossings[i], crossings[i + 1]);
    }
  }
  return result;
}

}  // namespace arenite::data
