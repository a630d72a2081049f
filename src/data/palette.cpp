#include "src/data/palette.hpp"

#include <algorithm>
#include <cstdlib>

namespace arenite::data {
namespace {

constexpr int wheel = 1536;

// How much of a channel the pure hue has: all within a sixth of the wheel from the channel's own
// place, falling to nothing over the next sixth.
int strength(int hue, int place) {
  const int apart = std::abs((hue + wheel - place) % wheel - wheel / 2);
  return std::clamp(apart - wheel / 6, 0, 255);
}

}  // namespace

Colour colour_of(int hue, int saturation, int value) noexcept {
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i) {
    const int missing = 255 - strength(hue, static_cast<int>(i) * wheel / 3);
    colour[i] = value * (255 * 255 - saturation * missing) / (255 * 255);
  }
  return colour;
}

Palette roll_grey_palette(Dice& dice) { return {.cloth = {dice.roll(70, 240)}}; }

Palette roll_colour_palette(Dice& dice) {
  // Rolled one by one: among arguments every compiler has an order of its own.
  const auto roll_colour = [&dice](int least_saturation, int most_saturation, int least_value) {
    const int hue = dice.roll(0, wheel - 1);
    const int saturation = dice.roll(least_saturation, most_saturation);
    return colour_of(hue, saturation, dice.roll(least_value, 240));
  };
  Palette palette;
  palette.background = roll_colour(0, 110, 20);
  palette.cloth = roll_colour(60, 255, 60);
  palette.accent = roll_colour(0, 255, 20);
  int difference = 0;
  for (std::size_t i = 0; i < palette.cloth.size(); ++i)
    difference = std::max(difference, std::abs(palette.cloth[i] - palette.background[i]));
  if (difference < 72) {  // half the range away in every channel instead
    for (int& channel : palette.cloth) channel = (channel + 128) % 256;
  }
  return palette;
}

}  // namespace arenite::data
