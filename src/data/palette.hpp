// Colours of the drawn garments, in integers only: the same bytes on every machine.
#pragma once

#include "src/data/garments.hpp"

#include <array>

namespace arenite::data {

using Colour = std::array<int, 3>;  ///< red, green, blue, 0…255; a grey one has only the first

/// `hue` 0…1535 once around the wheel from red, `saturation` and `value` 0…255.
Colour colour_of(int hue, int saturation, int value) noexcept;

struct Palette {
  Colour background{};
  Colour cloth{};
  Colour accent{};  ///< what a pattern mixes into the cloth
};

Palette roll_grey_palette(Dice& dice);  ///< on black, patterns darken

/// A muted background, and a cloth that differs from it by 56 or more in at least one channel.
Palette roll_colour_palette(Dice& dice);

}  // namespace arenite::data
