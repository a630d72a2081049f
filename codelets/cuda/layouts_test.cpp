// Copies between layouts, their grids run as loops.
#include "codelets/cuda/layouts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace arenite::codelets::cuda {
namespace {

/// Calls f with grids that run from the first index on, and from the last one.
template <class F>
void in_both_orders(F f) {
  for (const bool first : {true, false}) {
    from_the_first() = first;
    f();
  }
}

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(i));
  return all;
}

TEST(Layouts, TransposeAnyMatrix) {
  const KernelCall call;
  for (const std::int64_t rows : {1, 7, 8, 9, 25, 64}) {
    for (const std::int64_t columns : {1, 3, 8, 16, 17, 33}) {
      const std::vector<float> from = numbers(rows * columns);
      in_both_orders([&] {
        std::vector<float> to(from.size(), NAN);
        transpose<Unchanged>(call, rows, columns, from.data(), to.data());
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) {
            ASSERT_EQ(to[static_cast<std::size_t>(c * rows + r)],
                      from[static_cast<std::size_t>(r * columns + c)])
                << rows << "x" << columns;
          }
        }
      });
    }
  }
}

TEST(Layouts, CopyRowsRounded) {
  const KernelCall call;
  constexpr std::int64_t rows = 5, columns = 3, stride = 7;
  std::vector<float> from = numbers(rows * stride);
  for (float& value : from) value = 1 + value / 1000;
  in_both_orders([&] {
    std::vector<float> rounded(rows * columns, NAN), transposed(rows * columns, NAN);
    std::vector<std::uint16_t> halves(rows * columns, 0);
    copy_rows<RoundedToBfloat16>(call, rows, columns, stride, from.data(), rounded.data());
    copy_rows<Bfloat16>(call, rows, columns, stride, from.data(), halves.data());
    transpose<RoundedToBfloat16>(call, rows, columns, from.data(), transposed.data());
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      const std::size_t row = i / columns, column = i % columns;
      const float expected = to_bfloat16(from[row * stride + column]);
      EXPECT_EQ(rounded[i], expected);
      EXPECT_EQ(std::uint32_t{halves[i]} << 16, std::bit_cast<std::uint32_t>(expected));
      EXPECT_EQ(transposed[column * rows + row], to_bfloat16(from[i]));
    }
  });
}

// What neighbouring threads read lies side by side, and what they write does.
TEST(Layouts, TransposeReadsAndWritesWholeSectors) {
  const Transposition t{16, 24};
  for (std::int64_t i = 0; i < t.count(); i += 8) {
    const Transposition::At first = t.at(i);
    for (std::int64_t k = 0; k < 8; ++k) {
      EXPECT_EQ(t.at(i + k).row, first.row);
      EXPECT_EQ(t.at(i + k).column, first.column + k);
    }
  }
}

}  // namespace
}  // namespace arenite::codelets::cuda
