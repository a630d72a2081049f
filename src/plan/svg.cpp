#include "src/plan/svg.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "src/plan/text.hpp"

namespace arenite::plan::svg {
namespace {

/// Hue in degrees, the others from 0 to 1.
std::string colour(double hue, double saturation, double lightness) {
  const double chroma = saturation * std::min(lightness, 1 - lightness);
  std::string text = "#";
  for (const double n : {0.0, 8.0, 4.0}) {
    const double k = std::fmod(n + hue / 30, 12);
    const double level = lightness - chroma * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    text += fmt::format("{:02x}", std::lround(255 * level));
  }
  return text;
}

/// Hue and saturation of init, forward, backward, update and evaluate.
constexpr std::array<std::pair<double, double>, 5> bases{
    {{210, 0.10}, {208, 0.66}, {30, 0.78}, {130, 0.42}, {285, 0.42}}};

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

std::string px(double value) { return decimal(value, 2); }

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
    const std::string_view letter = text.substr(i, length);
    result += letter == "<"    ? "&lt;"
              : letter == ">"  ? "&gt;"
              : letter == "&"  ? "&amp;"
              : letter == "\"" ? "&quot;"
                               : letter;
    i += length;
  }
  return result;
}

/// `attributes` begin with a blank, if there are any.
static std::string text_at(double x, double y, const std::string& attributes,
                           const std::string& words) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\"" + attributes + ">" + escape(words) +
         "</text>\n";
}

Palette::Palette(const std::vector<Kind>& kinds) {
  std::map<Phase, std::size_t> shades;
  for (const Kind& kind : kinds) entries_.emplace(kind, Entry{});
  for (auto& [key, entry] : entries_) entry.shade = shades[key.first]++;
  std::size_t index = 0;
  for (auto& [key, entry] : entries_) {
    entry.index = index++;
    const double place =
        (static_cast<double>(entry.shade) + 0.5) / static_cast<double>(shades[key.first]);
    const auto [hue, saturation] = bases.at(static_cast<std::size_t>(key.first));
    entry.fill = colour(hue + 36 * (place - 0.5), saturation, 0.60 + 0.22 * place);
  }
}

std::string Palette::css() const {
  std::string text;
  for (const auto& [key, entry] : entries_) {
    text += ".c" + std::to_string(entry.index) + "{fill:" + entry.fill + "}";
  }
  return text;
}

std::string Palette::css_class(const Kind& kind) const {
  return "c" + std::to_string(entries_.at(kind).index);
}

double Palette::legend(std::string& svg, double y) const {
  double x = left;
  for (const auto& [key, entry] : entries_) {
    std::string name(to_string(key.first));
    if (!key.second.empty()) name += " · " + key.second;
    const double width = 30 + character * static_cast<double>(name.size());
    if (x + width > picture_width - right && x > left) {
      x = left;
      y += 20;
    }
    svg += "<rect class=\"c" + std::to_string(entry.index) + "\" x=\"" + px(x) + "\" y=\"" + px(y) +
           "\" width=\"12\" height=\"12\"/>" + text_at(x + 17, y + 10, "", name);
    x += width;
  }
  return y + 20;
}

void Canvas::text(double x, double y, const std::string& attributes, const std::string& words) {
  out_ += text_at(x, y, attributes, words);
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  out_ += "<path class=\"" + std::string(css_class) + "\" d=\"M" + px(x1) + " " + px(y1) + "L" +
          px(x2) + " " + px(y2) + "\"/>\n";
}

void Canvas::box(const Box& box, const std::string& css_class, const std::string& title) {
  out_ += "<rect class=\"" + css_class + "\" x=\"" + px(box.x) + "\" y=\"" + px(box.y) +
          "\" width=\"" + px(box.width) + "\" height=\"" + px(box.height) + "\"><title>" +
          escape(title) + "</title></rect>\n";
}

void Canvas::heading(double y, const std::string& words, const std::string& facts) {
  out_ += "<text class=\"head\" x=\"" + px(left) + "\" y=\"" + px(y) + "\">" + escape(words) +
          "<tspan class=\"facts\" dx=\"14\">" + escape(facts) + "</tspan></text>\n";
}

void Canvas::name(const Box& box, const std::string& words, const std::string& second) {
  const double length = character * static_cast<double>(words.size()) + 6;
  const double middle_x = box.x + box.width / 2;
  const double middle_y = box.y + box.height / 2;
  const auto put = [&](double at_y, const std::string& turn, const std::string& line) {
    names_ += text_at(middle_x, at_y, turn, line);
  };
  if (length <= box.width && box.height >= 13) {
    const bool both =
        box.height >= 30 && character * static_cast<double>(second.size()) + 6 <= box.width;
    put(middle_y + (both ? -3 : 4), "", words);
    if (both) put(middle_y + 11, " class=\"size\"", second);
  } else if (length <= box.height && box.width >= 13) {
    put(middle_y + 4, " transform=\"rotate(-90 " + px(middle_x) + " " + px(middle_y) + ")\"",
        words);
  }
}

void Canvas::names() {
  out_ += "<g class=\"names\">\n" + names_ + "</g>\n";
  names_.clear();
}

void Canvas::addresses(std::int64_t peak, const std::function<double(double)>& y) {
  // The least power of two that gives at most 8 steps reads well in binary units.
  std::int64_t step = 1;
  while (peak / step >= 8) step *= 2;
  for (std::int64_t address = 0; address <= peak; address += step) {
    const double at = y(static_cast<double>(address));
    line(left, at, picture_width - right, at, "grid");
    text(left - 8, at + 4, " text-anchor=\"end\"", bytes_text(address));
  }
}

void Canvas::times(std::int64_t begin, std::int64_t end, double bottom,
                   const std::function<double(std::int64_t)>& x) {
  // Round numbers: 1, 2 or 5 times a power of ten, at most 14 of them.
  const double span = static_cast<double>(end - begin);
  double tick = 1;
  for (int i = 0; span / tick > 14; ++i) tick *= i % 3 == 1 ? 2.5 : 2;
  const auto whole = static_cast<std::int64_t>(tick);
  std::int64_t time = begin - begin % whole;
  if (time < begin) time += whole;
  for (; time <= end; time += whole) {
    line(x(time), bottom, x(time), bottom + 4, "axis");
    text(x(time), bottom + 17, " text-anchor=\"middle\"", std::to_string(time));
  }
  line(left, bottom, picture_width - right, bottom, "axis");
}

void Canvas::live(double begin, double end,
                  const std::vector<std::pair<double, std::int64_t>>& changes,
                  const std::function<double(double)>& y) {
  if (changes.empty()) return;
  std::string path = "M" + px(begin) + " " + px(y(0));
  // Within one pixel only the highest level can be told, and matters.
  for (std::size_t i = 0; i < changes.size();) {
    const double at = changes[i].first;
    std::int64_t most = changes[i].second;
    for (++i; i < changes.size() && changes[i].first < at + 1; ++i)
      most = std::max(most, changes[i].second);
    path += "H" + px(at) + "V" + px(y(static_cast<double>(most)));
  }
  path += "H" + px(end) + "V" + px(y(0));
  out_ += "<path class=\"halo\" d=\"" + path + "\"/>\n<path class=\"live\" d=\"" + path + "\"/>\n";
}

void Canvas::levels(const Levels& levels, const std::function<double(double)>& y) {
  const double peak = y(static_cast<double>(levels.peak));
  line(left, peak, picture_width - right, peak, "peak");
  text(picture_width - right, peak - 5, " class=\"peaktext\" text-anchor=\"end\"",
       (levels.optimal ? "peak = lower bound: " : "peak ") + bytes_text(levels.peak));
  if (levels.optimal) return;
  const double bound = y(static_cast<double>(levels.bound));
  line(left, bound, picture_width - right, bound, "bound");
}

void Canvas::key(double y, const std::vector<std::pair<std::string_view, std::string>>& entries) {
  double x = left;
  for (const auto& [css_class, words] : entries) {
    out_ += "<path class=\"" + std::string(css_class) + "\" d=\"M" + px(x) + " " + px(y) +
            "h22\"/>" + text_at(x + 28, y + 4, "", words);
    x += 48 + character * static_cast<double>(words.size());
  }
}

std::string document(double height, const std::string& css, const std::string& body) {
  const std::string size = px(picture_width) + " " + px(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" +
         px(picture_width) + "\" height=\"" + px(height) + "\">\n<style>" + std::string(style) +
         css + "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body +
         "</svg>\n";
}

}  // namespace arenite::plan::svg
