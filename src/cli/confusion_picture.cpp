#include "src/cli/confusion_picture.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/plan/svg.hpp"

namespace arenite::cli {
namespace {

namespace svg = plan::svg;

// In pixels.
constexpr double margin = 24, top = 64, largest_field = 68, least_with_number = 26;

/// Rows' names stand to the left, columns' above, from below upwards.
double room_for(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  constexpr double most = 220, gap = 12;
  return std::min(static_cast<double>(longest) * svg::character, most) + gap;
}

std::string fill_of(double share, bool right) {
  // A few of many are to be seen, too.
  const double depth = std::isnan(share) ? 0 : std::sqrt(share);
  constexpr double lightest = 97, range = 52;
  return fmt::format("hsl({},{}%,{:.0f}%)", right ? 140 : 8, right ? 42 : 70,
                     lightest - range * depth);
}

}  // namespace

std::string picture_of(const train::Confusion& confusion, const std::string& title,
                       const std::function<std::string(std::int64_t)>& name_of) {
  const std::int64_t classes = confusion.classes;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < classes; ++i) names.push_back(name_of(i));
  const double room = room_for(names), left = margin + room, above = top + room;
  const double field =
      std::min((svg::picture_width - left - margin) / static_cast<double>(classes), largest_field);
  const auto at = [&](double begin, std::int64_t i) {
    return begin + field * static_cast<double>(i);
  };
  std::string body;
  svg::Canvas canvas(body);
  canvas.heading(margin + 6, title,
                 fmt::format("{:.2f} % right; rows: the class, columns: what it is taken for",
                             confusion.accuracy() * 100));
  for (std::int64_t row = 0; row < classes; ++row) {
    const auto number = static_cast<std::size_t>(row);
    const double middle = at(above, row) + field / 2 + 4, line = at(left, row) + field / 2 + 4;
    canvas.text(left - 8, middle, " text-anchor=\"end\"", names[number]);
    canvas.text(line, above - 8,
                fmt::format(" transform=\"rotate(-90 {} {})\"", svg::px(line), svg::px(above - 8)),
                names[number]);
    const std::int64_t of_class = confusion.of_class(row);
    for (std::int64_t column = 0; column < classes; ++column) {
      const std::int64_t count = confusion.count(row, column);
      const double share = static_cast<double>(count) / static_cast<double>(of_class);
      const svg::Box box{at(left, column), at(above, row), field, field};
      body += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#fff\"><title>{}"
          "</title></rect>\n",
          svg::px(box.x), svg::px(box.y), svg::px(field), svg::px(field),
          fill_of(share, row == column),
          svg::escape(fmt::format("{} of {} images of class {} taken for {}", count, of_class,
                                  names[number], names[static_cast<std::size_t>(column)])));
      if (field < least_with_number || count == 0) continue;
      canvas.text(box.x + field / 2, middle,
                  " text-anchor=\"middle\" style=\"pointer-events:none\"", std::to_string(count));
    }
  }
  return svg::document(at(above, classes) + margin, "", body);
}

}  // namespace arenite::cli
