#include <arenite/plan/draw.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "src/plan/picture.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

constexpr std::size_t margin = 12;   // columns of the addresses, with the axis
constexpr std::size_t columns = 88;  // of the picture at most
constexpr std::string_view symbols =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// One axis cut into cells. Exact: every boundary of a buffer is a boundary of cells. Otherwise
/// cells are equal and show what lies at their middle.
struct Axis {
  bool exact = true;
  std::vector<std::int64_t> places;  // of the cells, ascending: whose box covers it, fills the cell
  std::vector<std::int64_t> labels;  // where the cells begin
  std::vector<bool> labelled;        // of the cells of one stretch, the first

  std::size_t size() const { return places.size(); }
};

/// Up to `most_cells` cells for `marks` (ascending boundaries, at least two). The cells of an
/// exact axis are as many for each stretch as `cells(stretch, end)` says.
template <class Cells>
Axis make_axis(const std::vector<std::int64_t>& marks, std::size_t most_cells, Cells cells) {
  Axis axis;
  for (std::size_t m = 0; m + 1 < marks.size(); ++m) {
    const std::size_t count = cells(marks[m], marks[m + 1]);
    for (std::size_t c = 0; c < count; ++c) {
      axis.places.push_back(marks[m]);
      axis.labelled.push_back(c == 0);
    }
    if (axis.size() > most_cells) axis.exact = false;
    if (!axis.exact) break;
  }
  axis.labels = axis.places;
  if (axis.exact) return axis;

  axis.places.clear();
  axis.labels.clear();
  const double span = static_cast<double>(marks.back() - marks.front());
  for (std::size_t c = 0; c < most_cells; ++c) {
    const double width = span / static_cast<double>(most_cells);
    const auto at = [&](double place) { return static_cast<std::int64_t>(place * width); };
    axis.places.push_back(marks.front() + at(static_cast<double>(c) + 0.5));
    axis.labels.push_back(marks.front() + at(static_cast<double>(c)));
  }
  axis.labelled.assign(most_cells, true);
  return axis;
}

/// First and last + 1 of the cells whose place lies in [begin, end).
std::pair<std::size_t, std::size_t> cover(const Axis& axis, std::int64_t begin, std::int64_t end) {
  const auto at = [&](std::int64_t place) {
    return static_cast<std::size_t>(
        std::lower_bound(axis.places.begin(), axis.places.end(), place) - axis.places.begin());
  };
  return {at(begin), at(end)};
}

std::string plain(std::string_view text, std::size_t most) {
  std::string result;
  for (const char c : text.substr(0, most)) result += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > most) result.back() = '~';
  return result;
}

class TextPanel {
 public:
  TextPanel(const Plan& plan, const Panel& panel) : plan_(plan), panel_(panel) {}

  std::string draw() {
    headline();
    if (panel_.buffers.empty()) return text_ + "  no buffer has bytes\n";
    cut_axes();
    choose_symbols();
    paint();
    grid();
    time_axis();
    legend();
    return text_;
  }

 private:
  void headline() {
    const SpacePlan& space = panel_.space;
    std::string line = to_string(space.space) + ": peak " + digits(space.peak) + " bytes";
    line += space.optimal ? " = lower bound, optimal"
                          : ", lower bound " + digits(space.lower_bound) + " bytes";
    text_ += plain(line + " (" + space.strategy + ")", margin + columns) + "\n";
  }

  void cut_axes() {
    std::set<std::int64_t> times;
    std::set<std::int64_t> addresses{0};
    for (const std::size_t i : panel_.buffers) {
      for (const auto [begin, end] : pieces(plan_.buffers[i])) {
        times.insert(begin);
        times.insert(end);
      }
      addresses.insert(plan_.offsets[i]);
    }
    // Padding up to the next buffer counts as the lower one's: a row for it would only distract.
    const std::set<std::int64_t> offsets = addresses;
    for (const std::size_t i : panel_.buffers) {
      const std::int64_t end = plan_.offsets[i] + plan_.buffers[i].bytes;
      const auto next = offsets.lower_bound(end);
      const bool padding =
          next != offsets.end() && *next <= round_up(end, plan_.buffers[i].alignment);
      top_.emplace(i, padding ? *next : end);
      addresses.insert(top_.at(i));
    }
    // Each stretch between two events is as wide as any other: what matters is their order.
    const std::size_t wide = std::clamp<std::size_t>(columns / (times.size() - 1), 1, 12);
    time_ = make_axis({times.begin(), times.end()}, columns,
                      [&](std::int64_t, std::int64_t) { return wide; });
    // Rows follow the bytes, but nothing is lower than one row.
    constexpr double rows = 14;
    const double top = static_cast<double>(*addresses.rbegin());
    address_ = make_axis({addresses.begin(), addresses.end()}, 40,
                         [&](std::int64_t begin, std::int64_t end) {
                           const double part = static_cast<double>(end - begin) / top;
                           return static_cast<std::size_t>(std::max(1.0, part * rows + 0.5));
                         });
  }

  /// Letters for the largest boxes, by begin; the rest share '#'.
  void choose_symbols() {
    std::vector<std::size_t> largest = panel_.buffers;
    const auto area = [&](std::size_t i) {
      const Lifetime& lifetime = plan_.buffers[i].lifetime;
      return static_cast<double>(plan_.buffers[i].bytes) *
             static_cast<double>(lifetime.end - lifetime.begin);
    };
    std::stable_sort(largest.begin(), largest.end(),
                     [&](std::size_t a, std::size_t b) { return area(a) > area(b); });
    largest.resize(std::min(largest.size(), symbols.size()));
    const std::set<std::size_t> named(largest.begin(), largest.end());
    for (const std::size_t i : panel_.buffers) {
      if (named.contains(i)) symbol_.emplace(i, symbols[symbol_.size()]);
    }
  }

  void paint() {
    cells_.assign(address_.size(), std::string(time_.size(), '.'));
    for (const std::size_t i : panel_.buffers) {
      for (const Lifetime& piece : pieces(plan_.buffers[i])) paint(i, piece);
    }
  }

  void paint(std::size_t i, const Lifetime& piece) {
    const auto [first_row, last_row] = cover(address_, plan_.offsets[i], top_.at(i));
    const auto [first, last] = cover(time_, piece.begin, piece.end);
    if (first_row >= last_row || first >= last) return;
    const auto known = symbol_.find(i);
    const char fill = known == symbol_.end() ? '#' : known->second;
    for (std::size_t r = first_row; r < last_row; ++r) {
      std::fill(cells_[r].begin() + static_cast<std::ptrdiff_t>(first),
                cells_[r].begin() + static_cast<std::ptrdiff_t>(last), fill);
    }
    // The name in the middle, with a letter left on both sides.
    const std::string name = " " + plain(plan_.buffers[i].name, 40) + " ";
    if (name.size() + 2 <= last - first) {
      cells_[(first_row + last_row - 1) / 2].replace(first + (last - first - name.size()) / 2,
                                                     name.size(), name);
    }
  }

  void grid() {
    text_ += fmt::format("{:>{}} +{:-<{}}\n", bytes_text(panel_.space.peak), margin - 2, "",
                         time_.size());
    for (std::size_t r = address_.size(); r-- > 0;) {
      const bool show = address_.exact ? address_.labelled[r] : r % 4 == 0;
      text_ += fmt::format("{:>{}} |{}\n", show ? bytes_text(address_.labels[r]) : "", margin - 2,
                           cells_[r]);
    }
  }

  /// Times under the columns at which they begin, as many as stay apart.
  void time_axis() {
    std::string ticks(time_.size() + 1, '-');
    std::string labels;
    for (std::size_t c = 0; c <= time_.size(); ++c) {
      const bool last = c == time_.size();
      if (!last && !time_.labelled[c]) continue;
      const std::string label = std::to_string(last ? panel_.end : time_.labels[c]);
      if (labels.size() > c || c + label.size() > columns) continue;
      ticks[c] = '+';
      labels += std::string(c - labels.size(), ' ') + label + " ";
    }
    if (!labels.empty()) labels.pop_back();
    text_ +=
        std::string(margin - 1, ' ') + ticks + "\n" + std::string(margin - 1, ' ') + labels + "\n";
  }

  void legend() {
    constexpr std::size_t widest = 36;
    std::size_t name_width = 0;
    std::size_t bytes_width = 0;
    for (const auto& [i, symbol] : symbol_) {
      name_width = std::max(name_width, plain(plan_.buffers[i].name, widest).size());
      bytes_width = std::max(bytes_width, digits(plan_.buffers[i].bytes).size());
    }
    for (const std::size_t i : panel_.buffers) {
      const auto known = symbol_.find(i);
      if (known == symbol_.end()) continue;
      const Buffer& buffer = plan_.buffers[i];
      std::string line =
          fmt::format("  {}  {:<{}}  {:>{}} bytes at {}, {}, {}", known->second,
                      plain(buffer.name, widest), name_width, digits(buffer.bytes), bytes_width,
                      digits(plan_.offsets[i]), lifetime_text(buffer), to_string(buffer.phase));
      if (!buffer.label.empty()) line += " " + buffer.label;
      text_ += plain(line, margin + columns) + "\n";
    }
    if (panel_.buffers.size() > symbol_.size()) {
      text_ +=
          "  #  " + std::to_string(panel_.buffers.size() - symbol_.size()) + " smaller buffers\n";
    }
    if (!time_.exact || !address_.exact) {
      text_ += std::string("  (") + (time_.exact ? "" : "columns") +
               (!time_.exact && !address_.exact ? " and " : "") + (address_.exact ? "" : "rows") +
               " are sampled: thin buffers may not show)\n";
    }
  }

  const Plan& plan_;
  const Panel& panel_;
  std::map<std::size_t, std::int64_t> top_;  // where the box of a buffer ends
  Axis time_;
  Axis address_;
  std::map<std::size_t, char> symbol_;
  std::vector<std::string> cells_;  // by row, lowest address first
  std::string text_;
};

}  // namespace

std::string draw_text(const Plan& plan) {
  std::string text;
  for (const Panel& panel : panels(plan)) {
    text += (text.empty() ? "" : "\n") + TextPanel(plan, panel).draw();
  }
  return text;
}

}  // namespace arenite::plan
