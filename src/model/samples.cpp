#include <arenite/samples.hpp>

#include <algorithm>
#include <limits>

#include "src/base/refuse.hpp"

namespace arenite {

std::int64_t Samples::count() const noexcept {
  return columns.empty() || columns.front().shape.rank() == 0 ? 0 : columns.front().shape[0];
}

std::int64_t Samples::bytes() const noexcept {
  std::int64_t sum = 0;
  for (const Column& column : columns) sum += column.bytes();
  return sum;
}

void check(const Samples& samples) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (samples.columns.empty()) refuse("samples of no columns", "a column for each input");
  const std::int64_t count = samples.count();
  for (const Column& column : samples.columns) {
    // Texts are made where something is wrong: steps come here.
    const auto name = [&] { return "column '" + column.input + "'"; };
    if (std::ranges::count(samples.columns, column.input, &Column::input) > 1)
      refuse(name() + " twice", "each input once");
    if (column.shape.rank() == 0) refuse(name() + " of shape []", "[M, …], a row for each sample");
    if (column.shape[0] != count) {
      refuse(name() + " of " + std::to_string(column.shape[0]) + " samples",
             std::to_string(count) + ", as column '" + samples.columns.front().input + "' has");
    }
    if (column.data == nullptr && column.bytes() > 0)
      refuse("null for the bytes of " + name(), std::to_string(column.bytes()) + " bytes");
    if (reinterpret_cast<std::uintptr_t>(column.data) % size_of(column.type) != 0) {
      refuse("bytes of " + name() + " that begin in the middle of a number",
             "a multiple of " + std::to_string(size_of(column.type)) + " for " +
                 std::string(to_string(column.type)));
    }
  }
  if (count < 1 || count > most)
    refuse(std::to_string(count) + " samples", "1 to " + std::to_string(most));
}

}  // namespace arenite
