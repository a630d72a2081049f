#include <arenite/data/samples.hpp>

#include <algorithm>
#include <limits>

#include "src/base/refuse.hpp"

namespace arenite::data {
namespace {

constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::int64_t Samples::count() const noexcept {
  return columns.empty() || columns.front().shape.rank() == 0 ? 0 : columns.front().shape[0];
}

std::int64_t Samples::bytes() const noexcept {
  std::int64_t sum = 0;
  for (const Column& column : columns) sum += column.bytes();
  return sum;
}

void check(const Samples& samples) {
  if (samples.columns.empty()) refuse("samples of no columns", "a column for each input");
  const std::int64_t count = samples.count();
  for (const Column& column : samples.columns) {
    const std::string name = "column '" + column.input + "'";
    if (std::ranges::count(samples.columns, column.input, &Column::input) > 1)
      refuse(name + " twice", "each input once");
    if (column.shape.rank() == 0) refuse(name + " of shape []", "[M, …], a row for each sample");
    if (column.shape[0] != count) {
      refuse(name + " of " + std::to_string(column.shape[0]) + " samples",
             std::to_string(count) + ", as column '" + samples.columns.front().input + "' has");
    }
    if (column.data == nullptr && column.bytes() > 0)
      refuse("null for the bytes of " + name, std::to_string(column.bytes()) + " bytes");
    if (reinterpret_cast<std::uintptr_t>(column.data) % size_of(column.type) != 0) {
      refuse("bytes of " + name + " that begin in the middle of a number",
             "a multiple of " + std::to_string(size_of(column.type)) + " for " +
                 std::string(to_string(column.type)));
    }
  }
  if (count < 1 || count > most_samples)
    refuse(std::to_string(count) + " samples", "1 to " + std::to_string(most_samples));
}

Samples samples_of(const Split& split, std::string_view kind) {
  const std::string of = kind.empty() ? "" : std::string(kind) + " ";
  const auto number = [](auto count) { return std::to_string(count); };
  if (split.count < 1 || split.count > most_samples)
    refuse(number(split.count) + " " + of + "images", "1 to " + number(most_samples));
  const auto count = static_cast<std::size_t>(split.count),
             one = static_cast<std::size_t>(split.image_bytes());
  if (split.images.size() / one != count || split.images.size() % one != 0) {
    refuse(number(split.images.size()) + " bytes of " + of + "images",
           number(count) + " images of " + number(one) + " bytes");
  }
  if (split.labels.size() != count) {
    refuse(number(split.labels.size()) + " " + of + "labels", number(count) + ", one an image");
  }
  const auto wrong = std::ranges::find_if(split.labels, [&](std::uint8_t label) {
    return split.classes > 0 && label >= split.classes;
  });
  if (wrong != split.labels.end()) {
    refuse(
        "label " + number(*wrong) + " of " + of + "image " + number(wrong - split.labels.begin()),
        "0 to " + number(split.classes - 1) + ", one of " + number(split.classes) + " classes");
  }
  return {{{"images",
            split.images.data(),
            DType::uint8,
            {split.count, split.height, split.width, split.channels},
            1.0 / 255},
           {"labels", split.labels.data(), DType::uint8, {split.count}}}};
}

}  // namespace arenite::data
