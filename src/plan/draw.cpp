#include <arenite/plan/draw.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/plan/picture.hpp"
#include "src/plan/svg.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

using svg::left;
using svg::Palette;
using svg::plot_width;

class PanelDrawer {
 public:
  PanelDrawer(const Plan& plan, const Panel& panel, const Palette& palette, double top,
              double height, std::string& svg)
      : plan_(plan),
        panel_(panel),
        palette_(palette),
        top_(top),
        height_(height),
        svg_(svg),
        canvas_(svg) {}

  void draw() {
    const SpacePlan& space = panel_.space;
    const auto to_x = [&](std::int64_t time) { return x(time); };
    const auto to_y = [&](double address) { return y(address); };
    canvas_.heading(top_ - 12, to_string(space.space), facts());
    canvas_.addresses(space.peak, to_y);
    canvas_.times(panel_.begin, panel_.end, top_ + height_, to_x);
    boxes();
    live_curve();
    canvas_.names();
    canvas_.levels({.peak = space.peak, .bound = space.lower_bound, .optimal = space.optimal},
                   to_y);
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

  std::string facts() const {
    const SpacePlan& space = panel_.space;
    return "peak " + bytes_text(space.peak) + " (" + digits(space.peak) + " bytes) · lower bound " +
           bytes_text(space.lower_bound) + (space.optimal ? " · optimal" : "") + " · " +
           std::to_string(panel_.buffers.size()) + " buffers · " + space.strategy;
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
      const std::string title = buffer.name + "\n" + digits(buffer.bytes) + " bytes at offset " +
                                digits(plan_.offsets[i]) + "\nlifetime " + lifetime_text(buffer) +
                                "\n" + what;
      for (const auto [begin, end] : pieces(buffer)) {
        const svg::Box box{x(begin), y0, std::max(0.3, x(end) - x(begin)), height};
        canvas_.box(box, palette_.css_class({buffer.phase, buffer.label}), title);
        canvas_.name(box, buffer.name, bytes_text(buffer.bytes));
      }
      // What belongs together.
      const double middle = y0 + height / 2;
      for (const auto [begin, end] : buffer.gaps)
        canvas_.line(x(begin), middle, x(end), middle, "gap");
    }
    svg_ += "</g>\n";
  }

  void live_curve() {
    std::vector<std::pair<double, std::int64_t>> changes;
    for (const auto& [time, bytes] : panel_.live) changes.emplace_back(x(time), bytes);
    canvas_.live(x(panel_.begin), x(panel_.end), changes,
                 [&](double address) { return y(address); });
  }

  const Plan& plan_;
  const Panel& panel_;
  const Palette& palette_;
  double top_;
  double height_;
  std::string& svg_;
  svg::Canvas canvas_;
};

std::vector<Palette::Kind> kinds(const Plan& plan) {
  std::vector<Palette::Kind> all;
  for (const Buffer& buffer : plan.buffers) all.emplace_back(buffer.phase, buffer.label);
  return all;
}

}  // namespace

std::string to_svg(const Plan& plan) {
  const std::vector<Panel> all = panels(plan);
  const Palette palette(kinds(plan));
  const double height = all.size() <= 1 ? 520 : 340;

  std::string body;
  double y = palette.legend(body, 16);
  svg::Canvas(body).key(y + 6,
                        {{"live", "live bytes"}, {"peak", "peak"}, {"bound", "lower bound"}});
  y += 50;
  for (const Panel& panel : all) {
    PanelDrawer(plan, panel, palette, y, height, body).draw();
    y += height + 66;
  }
  return svg::document(y - 34, palette.css(), body);
}

void draw(const Plan& plan, const std::filesystem::path& file) { write_file(file, to_svg(plan)); }

}  // namespace arenite::plan
