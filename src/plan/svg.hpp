// What pictures of memory are drawn with: colours by phase and class, boxes' names, axes, a
// document.
//
// All of them append to a string; sizes are in pixels. Pure functions, safe from any thread.
#pragma once

#include <arenite/types.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::plan::svg {

inline constexpr double picture_width = 1200;
inline constexpr double left = 84;  // room for addresses
inline constexpr double right = 24;
inline constexpr double plot_width = picture_width - left - right;
inline constexpr double character = 6.4;  // width at the font size of labels, 11 px

std::string px(double value);

/// For text and attributes. XML has no way to write most control characters, and an ill-formed
/// byte would make the whole file unreadable: both become '?'.
std::string escape(std::string_view text);

/// Hue by phase, shade by label; the legend's order is that of (phase, label).
class Palette {
 public:
  using Kind = std::pair<Phase, std::string>;

  explicit Palette(const std::vector<Kind>& kinds);

  std::string css() const;
  /// "c3": the class of boxes of this kind, one of the constructor's.
  std::string css_class(const Kind& kind) const;
  /// Swatches with names, from `y` down; returns where they end.
  double legend(std::string& svg, double y) const;

 private:
  struct Entry {
    std::size_t shade = 0;  // among those of its phase
    std::size_t index = 0;
    std::string fill;
  };

  std::map<Kind, Entry> entries_;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Of a plan, in bytes.
struct Levels {
  std::int64_t peak = 0, bound = 0;
  bool optimal = false;
};

/// Appends to `out`; names of boxes are kept apart, and come over what is drawn between.
class Canvas {
 public:
  explicit Canvas(std::string& out) : out_(out) {}

  void text(double x, double y, const std::string& attributes, const std::string& words);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void box(const Box& box, const std::string& css_class, const std::string& title);
  /// In large letters, with smaller ones behind.
  void heading(double y, const std::string& words, const std::string& facts);
  /// The name where it fits into the box, upright in narrow ones, with the second line below it
  /// where that fits too.
  void name(const Box& box, const std::string& words, const std::string& second);
  void names();  ///< those so far

  /// Addresses from 0 to `peak`, at most 9, round in binary units; `y` says where one is.
  void addresses(std::int64_t peak, const std::function<double(double)>& y);
  /// Times from `begin` to `end`, at most 15, round; `x` says where one is, `bottom` is the axis.
  void times(std::int64_t begin, std::int64_t end, double bottom,
             const std::function<double(std::int64_t)>& x);
  /// Live bytes from each x at which they change, ascending; 0 before `begin`, and at `end` again.
  void live(double begin, double end, const std::vector<std::pair<double, std::int64_t>>& changes,
            const std::function<double(double)>& y);
  void levels(const Levels& levels, const std::function<double(double)>& y);
  /// Entries of a legend for curves: the class of a line and what it shows.
  void key(double y, const std::vector<std::pair<std::string_view, std::string>>& entries);

 private:
  std::string& out_;
  std::string names_;
};

/// The whole picture; `css` goes behind the common rules.
std::string document(double height, const std::string& css, const std::string& body);

}  // namespace arenite::plan::svg
