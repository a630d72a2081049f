#include <arenite/data/dataset.hpp>

#include <algorithm>
#include <limits>

#include "src/base/refuse.hpp"

namespace arenite::data {

Samples samples_of(const Split& split, std::string_view kind) {
  const std::string of = kind.empty() ? "" : std::string(kind) + " ";
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto number = [](auto count) { return std::to_string(count); };
  if (split.count < 1 || split.count > most)
    refuse(number(split.count) + " " + of + "images", "1 to " + number(most));
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
