#include <arenite/plan/draw.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "src/base/atomic_file.hpp"
#include "src/plan/picture.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

constexpr double picture_width = 1200;
constexpr double left = 84;  // room for addresses
constexpr double right = 24;
constexpr double plot_width = picture_width - left - right;
constexpr double character = 6.4;  // width at the font size of labels, 11 px

std::string px(double value) { return decimal(value, 2); }

/// For text and attributes. XML has no way to write most control characters, and an ill-formed
/// byte would make the whole file unreadable: both become '?'.
std::string escape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80             ? 1
                               : (lead & 0xe0) == 0xc0 ? 2
                               : (lead & 0xf0) == 0xe0 ? 3
                               : (lead & 0xf8) == 0xf0 ? 4
                                                       : 0;
    std::uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    bool good = length > 0 && i + length <= text.size();
    for (std::size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      point = point << 6 | (next & 0x3f);
    }
    static constexpr std::array<std::uint32_t, 5> least{0, 0x20, 0x80, 0x800, 0x10000};
    good = good && (point >= least[length] || point == '\n') && point <= 0x10ffff &&
           point != 0xfffe && point != 0xffff && (point < 0xd800 || point > 0xdfff);
    if (!good) {
      result += '?';
      ++i;
      continue;
    }
    switch (text[i]) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += text.substr(i, length);
    }
    i += length;
  }
  return result;
}

/// Hue in degrees, the others from 0 to 1.
std::string colour(double hue, double saturation, double lightness) {
  const double chroma = saturation * std::min(lightness, 1 - lightness);
  std::string text = "#";
  for (const double n : {0.0, 8.0, 4.0}) {
    const double k = std::fmod(n + hue / 30, 12);
    const double level = lightness - chroma * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    const auto byte = static_cast<unsigned>(std::lround(255 * level));
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Hue by phase, shade by label; the legend's order is that of (phase, label).
class Palette {
 public:
  explicit Palette(const Plan& plan) {
    std::map<Phase, std::size_t> shades;
    for (const Buffer& b : plan.buffers) entries_.emplace(std::pair(b.phase, b.label), Entry{});
    for (auto& [key, entry] : entries_) entry.shade = shades[key.first]++;
    std::size_t index = 0;
    for (auto& [key, entry] : entries_) {
      entry.index = index++;
      const double place =
          (static_cast<double>(entry.shade) + 0.5) / static_cast<double>(shades[key.first]);
      const auto [hue, saturation] = base(key.first);
      entry.fill = colour(hue + 36 * (place - 0.5), saturation, 0.60 + 0.22 * place);
    }
  }

  std::string css() const {
    std::string text;
    for (const auto& [key, entry] : entries_) {
      text += ".c" + std::to_string(entry.index) + "{fill:" + entry.fill + "}";
    }
    return text;
  }

  std::size_t index(const Buffer& buffer) const {
    return entries_.at({buffer.phase, buffer.label}).index;
  }

  /// Swatches with names, from `y` down; returns where they end.
  double legend(std::string& svg, double y) const {
    double x = left;
    for (const auto& [key, entry] : entries_) {
      std::string name(to_string(key.first));
      if (!key.second.empty()) name += " · " + key.second;
      const double width = 30 + character * static_cast<double>(name.size());
      if (x + width > picture_width - right && x > left) {
        x = left;
        y += 20;
      }
      svg += "<rect class=\"c" + std::to_string(entry.index) + "\" x=\"" + px(x) + "\" y=\"" +
             px(y) + "\" width=\"12\" height=\"12\"/><text x=\"" + px(x + 17) + "\" y=\"" +
             px(y + 10) + "\">" + escape(name) + "</text>\n";
      x += width;
    }
    return y + 20;
  }

 private:
  struct Entry {
    std::size_t shade = 0;  // among those of its phase
    std::size_t index = 0;
    std::string fill;
  };

  static std::pair<double, double> base(Phase phase) {
    switch (phase) {
      case Phase::init:
        return {210, 0.10};
      case Phase::forward:
        return {208, 0.66};
      case Phase::backward:
        return {30, 0.78};
      case Phase::update:
        return {130, 0.42};
      case Phase::evaluate:
        return {285, 0.42};
    }
    return {0, 0};
  }

  std::map<std::pair<Phase, std::string>, Entry> entries_;
};

class PanelDrawer {
 public:
  PanelDrawer(const Plan& plan, const Panel& panel, const Palette& palette, double top,
              double height, std::string& svg)
      : plan_(plan), panel_(panel), palette_(palette), top_(top), height_(height), svg_(svg) {}

  void draw() {
    title();
    axes();
    boxes();
    live_curve();
    svg_ += "<g class=\"names\">\n" + names_ + "</g>\n";
    levels();
  }

 private:
  double x(std::int64_t time) const {
    // Times lie within ±2^60, so that differences fit.
    return left + plot_width * static_cast<double>(time - panel_.begin) /
                      static_cast<double>(panel_.end - panel_.begin);
  }
  double y(double address) const {
    const double most = std::max(1.0, static_cast<double>(panel_.space.peak));
    return top_ + height_ - (height_ - 18) * address / most;  // 18: the peak's label
  }

  void text(double at_x, double at_y, const std::string& attributes, const std::string& words) {
    svg_ += "<text x=\"" + px(at_x) + "\" y=\"" + px(at_y) + "\"" + attributes + ">" +
            escape(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    svg_ += "<path class=\"" + std::string(style) + "\" d=\"M" + px(x1) + " " + px(y1) + "L" +
            px(x2) + " " + px(y2) + "\"/>\n";
  }

  void title() {
    const SpacePlan& space = panel_.space;
    std::string facts = "peak " + bytes_text(space.peak) + " (" + digits(space.peak) +
                        " bytes) · lower bound " + bytes_text(space.lower_bound) +
                        (space.optimal ? " · optimal" : "") + " · " +
                        std::to_string(panel_.buffers.size()) + " buffers · " + space.strategy;
    svg_ += "<text class=\"head\" x=\"" + px(left) + "\" y=\"" + px(top_ - 12) + "\">" +
            escape(to_string(space.space)) + "<tspan class=\"facts\" dx=\"14\">" + escape(facts) +
            "</tspan></text>\n";
  }

  void axes() {
    // The least power of two that gives at most 8 steps reads well in binary units.
    std::int64_t step = 1;
    while (panel_.space.peak / step >= 8) step *= 2;
    for (std::int64_t address = 0; address <= panel_.space.peak; address += step) {
      const double at = y(static_cast<double>(address));
      line(left, at, picture_width - right, at, "grid");
      text(left - 8, at + 4, " text-anchor=\"end\"", bytes_text(address));
    }
    // Round numbers: 1, 2 or 5 times a power of ten, at most 14 of them.
    const double span = static_cast<double>(panel_.end - panel_.begin);
    double tick = 1;
    for (int i = 0; span / tick > 14; ++i) tick *= i % 3 == 1 ? 2.5 : 2;
    const auto whole = static_cast<std::int64_t>(tick);
    std::int64_t time = panel_.begin - panel_.begin % whole;
    if (time < panel_.begin) time += whole;
    for (; time <= panel_.end; time += whole) {
      line(x(time), top_ + height_, x(time), top_ + height_ + 4, "axis");
      text(x(time), top_ + height_ + 17, " text-anchor=\"middle\"", std::to_string(time));
    }
    line(left, top_ + height_, picture_width - right, top_ + height_, "axis");
  }

  void boxes() {
    const std::size_t n = panel_.buffers.size();
    svg_ += "<g class=\"boxes\" stroke-width=\"" +
            std::string(n <= 300    ? "1"
                        : n <= 3000 ? "0.4"
                                    : "0.15") +
            "\">\n";
    for (const std::size_t i : panel_.buffers) {
      const Buffer& buffer = plan_.buffers[i];
      const auto offset = static_cast<double>(plan_.offsets[i]);
      const double y0 = y(offset + static_cast<double>(buffer.bytes));
      // What is too thin to see still shows that there is something.
      const double height = std::max(0.3, y(offset) - y0);
      std::string what(to_string(buffer.phase));
      if (!buffer.label.empty()) what += ", " + buffer.label;
      const std::string title =
          escape(buffer.name + "\n" + digits(buffer.bytes) + " bytes at offset " +
                 digits(plan_.offsets[i]) + "\nlifetime " + lifetime_text(buffer) + "\n" + what);
      for (const auto [begin, end] : pieces(buffer)) {
        const double width = std::max(0.3, x(end) - x(begin));
        svg_ += "<rect class=\"c" + std::to_string(palette_.index(buffer)) + "\" x=\"" +
                px(x(begin)) + "\" y=\"" + px(y0) + "\" width=\"" + px(width) + "\" height=\"" +
                px(height) + "\"><title>" + title + "</title></rect>\n";
        label(buffer, x(begin), y0, width, height);
      }
      gap_lines(buffer, y0 + height / 2);
    }
    svg_ += "</g>\n";
  }

  /// What belongs together.
  void gap_lines(const Buffer& buffer, double middle) {
    for (const auto [begin, end] : buffer.gaps) line(x(begin), middle, x(end), middle, "gap");
  }

  /// The name where it fits, upright in narrow boxes, with the size below it where that fits too.
  void label(const Buffer& buffer, double x0, double y0, double width, double height) {
    const double length = character * static_cast<double>(buffer.name.size()) + 6;
    const double middle_x = x0 + width / 2;
    const double middle_y = y0 + height / 2;
    const auto put = [&](double at_y, const std::string& turn, const std::string& words) {
      names_ += "<text x=\"" + px(middle_x) + "\" y=\"" + px(at_y) + "\"" + turn + ">" +
                escape(words) + "</text>\n";
    };
    if (length <= width && height >= 13) {
      const std::string size = bytes_text(buffer.bytes);
      const bool both = height >= 30 && character * static_cast<double>(size.size()) + 6 <= width;
      put(middle_y + (both ? -3 : 4), "", buffer.name);
      if (both) put(middle_y + 11, " class=\"size\"", size);
    } else if (length <= height && width >= 13) {
      put(middle_y + 4, " transform=\"rotate(-90 " + px(middle_x) + " " + px(middle_y) + ")\"",
          buffer.name);
    }
  }

  void live_curve() {
    if (panel_.live.empty()) return;
    std::string path = "M" + px(x(panel_.begin)) + " " + px(y(0));
    // Within one pixel only the highest level can be told, and matters.
    for (std::size_t i = 0; i < panel_.live.size();) {
      const double at = x(panel_.live[i].first);
      std::int64_t most = panel_.live[i].second;
      for (++i; i < panel_.live.size() && x(panel_.live[i].first) < at + 1; ++i) {
        most = std::max(most, panel_.live[i].second);
      }
      path += "H" + px(at) + "V" + px(y(static_cast<double>(most)));
    }
    path += "H" + px(x(panel_.end)) + "V" + px(y(0));
    svg_ +=
        "<path class=\"halo\" d=\"" + path + "\"/>\n<path class=\"live\" d=\"" + path + "\"/>\n";
  }

  void levels() {
    const SpacePlan& space = panel_.space;
    const double peak = y(static_cast<double>(space.peak));
    line(left, peak, picture_width - right, peak, "peak");
    text(picture_width - right, peak - 5, " class=\"peaktext\" text-anchor=\"end\"",
         (space.optimal ? "peak = lower bound: " : "peak ") + bytes_text(space.peak));
    if (space.optimal) return;
    const double bound = y(static_cast<double>(space.lower_bound));
    line(left, bound, picture_width - right, bound, "bound");
  }

  const Plan& plan_;
  const Panel& panel_;
  const Palette& palette_;
  double top_;
  double height_;
  std::string& svg_;
  std::string names_;  // over the boxes and the curve
};

constexpr std::string_view style =
    "text{font:11px system-ui,sans-serif;fill:#333}"
    ".head{font-size:15px;font-weight:600;fill:#111}"
    ".facts{font-size:12px;font-weight:400;fill:#444}"
    ".grid{stroke:#e6e6e6}.axis{stroke:#666}"
    ".boxes{stroke:#fff}.boxes rect:hover{stroke:#000;stroke-width:2}"
    ".gap{stroke:#555;stroke-width:1;stroke-dasharray:2 3}"
    ".names{pointer-events:none}.names text{text-anchor:middle;fill:#111}"
    ".names .size{font-size:10px;fill:#333}"
    "path{fill:none;pointer-events:none}"
    ".halo{stroke:#fff;stroke-width:4;stroke-opacity:.75}.live{stroke:#111;stroke-width:1.6}"
    ".peak{stroke:#c0272d;stroke-width:1.4;stroke-dasharray:7 4}.peaktext{fill:#c0272d}"
    ".bound{stroke:#c0272d;stroke-dasharray:2 3}";

}  // namespace

std::string to_svg(const Plan& plan) {
  const std::vector<Panel> all = panels(plan);
  const Palette palette(plan);
  const double height = all.size() <= 1 ? 520 : 340;

  std::string body;
  double y = palette.legend(body, 16);
  body += "<path class=\"live\" d=\"M" + px(left) + " " + px(y + 6) + "h22\"/><text x=\"" +
          px(left + 28) + "\" y=\"" + px(y + 10) + "\">live bytes</text>\n";
  body += "<path class=\"peak\" d=\"M" + px(left + 110) + " " + px(y + 6) + "h22\"/><text x=\"" +
          px(left + 138) + "\" y=\"" + px(y + 10) + "\">peak</text>\n";
  body += "<path class=\"bound\" d=\"M" + px(left + 190) + " " + px(y + 6) + "h22\"/><text x=\"" +
          px(left + 218) + "\" y=\"" + px(y + 10) + "\">lower bound</text>\n";
  y += 50;
  for (const Panel& panel : all) {
    PanelDrawer(plan, panel, palette, y, height, body).draw();
    y += height + 66;
  }

  const std::string size = px(picture_width) + " " + px(y - 34);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
         px(picture_width) + "\" height=\"" + px(y - 34) + "\">\n<style>" + std::string(style) +
         palette.css() + "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body +
         "</svg>\n";
}

void draw(const Plan& plan, const std::filesystem::path& file) { write_file(file, to_svg(plan)); }

}  // namespace arenite::plan
