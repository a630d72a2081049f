#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include "src/data/canvas.hpp"
#include "src/data/garments.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace arenite::data {
namespace {

constexpr int classes = 10;

// Colours, too, are whole numbers: the same bytes on every machine.
using Colour = std::array<int, 3>;  ///< red, green, blue, 0…255; a grey one has only the first

struct Palette {
  Colour background{};
  Colour cloth{};
  Colour accent{};  ///< what a pattern mixes into the cloth
};

constexpr int wheel = 1536;

// How much of a channel the pure hue has: all within a sixth of the wheel from the channel's own
// place, falling to nothing over the next sixth.
int strength(int hue, int place) {
  const int apart = std::abs((hue + wheel - place) % wheel - wheel / 2);
  return std::clamp(apart - wheel / 6, 0, 255);
}

/// `hue` 0…1535 once around the wheel from red, `saturation` and `value` 0…255.
Colour colour_of(int hue, int saturation, int value) noexcept {
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i) {
    const int missing = 255 - strength(hue, static_cast<int>(i) * wheel / 3);
    colour[i] = value * (255 * 255 - saturation * missing) / (255 * 255);
  }
  return colour;
}

/// On black, patterns darken.
Palette roll_grey_palette(Dice& dice) { return {.cloth = {dice.roll(70, 240)}}; }

/// A muted background, and a cloth that differs from it by 56 or more in at least one channel.
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

// What a set's images look like, and where its random numbers lie. A sample has `words` of them:
// its dice, then from `noise_word` on a byte of noise a pixel and channel.
struct Style {
  const char* name;
  int side, channels;
  int fit;  // pixels of a garment at full size
  Palette (*roll_palette)(Dice&);
  std::uint64_t words;
  std::uint32_t stream;  // of the training images; the test images have the next one

  constexpr int image_bytes() const noexcept { return side * side * channels; }
};

constexpr std::uint64_t noise_word = 256;
constexpr Style grey{.name = "synthetic",
                     .side = 28,
                     .channels = 1,
                     .fit = 24,
                     .roll_palette = roll_grey_palette,
                     .words = 512,
                     .stream = 0};
constexpr Style coloured{.name = "synthetic-color",
                         .side = 32,
                         .channels = 3,
                         .fit = 27,
                         .roll_palette = roll_colour_palette,
                         .words = 1024,
                         .stream = 2};
static_assert(noise_word + grey.image_bytes() / 4 <= grey.words);
static_assert(noise_word + coloured.image_bytes() / 4 <= coloured.words);

// Where the accent is mixed into the cloth, and how much of it.
struct Pattern {
  int kind = 0;  // plain, rows, columns, checks, diagonals
  int period = 4;
  int phase = 0;
  int contrast = 0;  // percent

  int operator()(int x, int y) const noexcept {
    const auto dark = [this](int position) { return (position + phase) % period < period / 2; };
    const bool shaded = kind == 1   ? dark(y)
                        : kind == 2 ? dark(x)
                        : kind == 3 ? dark(x) != dark(y)
                                    : kind == 4 && dark(x + y);
    return shaded ? contrast : 0;
  }
};

Pattern roll_pattern(Dice& dice) {
  return {.kind = dice.roll(0, 7),
          .period = dice.roll(3, 8),
          .phase = dice.roll(0, 7),
          .contrast = dice.roll(15, 60)};
}

Affine roll_placement(const Style& style, Dice& dice) {
  // A board unit is fit/256 pixel, so fit·256 in 1/256 of 1/256 pixel.
  const int wide = style.fit * dice.roll(190, 282);
  const int high = style.fit * dice.roll(200, 276);
  const int flip = dice.chance(50) ? -1 : 1;
  return {.xx = flip * wide,
          .xy = wide * dice.roll(-36, 36) / 256,
          .yx = flip * high * dice.roll(-20, 20) / 256,
          .yy = high,
          .shift_x = style.side * 128 + dice.roll(-600, 600),
          .shift_y = style.side * 128 + dice.roll(-600, 600)};
}

// One channel of a part's pixel.
int tone_of(const Part& part, const Palette& palette, int accent_percent, std::size_t channel) {
  if (part.finish == Finish::hole) return palette.background[channel];
  if (part.finish == Finish::plain) return palette.cloth[channel] * part.tone / 100;
  return (palette.cloth[channel] * (100 - accent_percent) +
          palette.accent[channel] * accent_percent) /
         100;
}

void paint(const Style& style, const Part& part, const Affine& place, const Palette& palette,
           const Pattern& pattern, std::vector<int>& image) {
  Polygon outline = part.outline;
  for (Point& p : outline) p = place(p);
  const std::vector<std::int32_t> covered = coverage(outline, style.side);
  const auto channels = static_cast<std::size_t>(style.channels);
  for (std::size_t i = 0; i < covered.size(); ++i) {
    if (covered[i] == 0) continue;
    const int x = static_cast<int>(i) % style.side, y = static_cast<int>(i) / style.side;
    const int accent_percent = pattern(x, y);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      int& value = image[i * channels + channel];
      value +=
          (tone_of(part, palette, accent_percent, channel) - value) * covered[i] / full_coverage;
    }
  }
}

void draw_sample(const Style& style, const Philox& random, std::uint64_t sample, int label,
                 std::uint8_t* out) {
  Dice dice(random, sample * style.words);
  const Affine place = roll_placement(style, dice);
  const Palette palette = style.roll_palette(dice);
  const Pattern pattern = roll_pattern(dice);
  const int light = dice.roll(-40, 40);  // percent more or less at the right edge
  const int noise = dice.roll(4, 32);
  const auto channels = static_cast<std::size_t>(style.channels);
  std::vector<int> image(static_cast<std::size_t>(style.image_bytes()));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = palette.background[i % channels];
  for (const Part& part : draw_garment(label, dice))
    paint(style, part, place, palette, pattern, image);

  PhiloxCounter words{};
  const std::uint64_t first = (sample * style.words + noise_word) / 4;
  for (std::size_t i = 0; i < image.size(); ++i) {
    // Sixteen bytes of noise a block of four words.
    if (i % 16 == 0) words = random.block(first + i / 16);
    const int byte = static_cast<int>(words[i % 16 / 4] >> (8 * (i % 4)) & 255);
    const int x = static_cast<int>(i / channels) % style.side;
    const int lit = image[i] * (100 + light * (2 * x - style.side) / style.side) / 100;
    out[i] = static_cast<std::uint8_t>(std::clamp(lit + (byte - 128) * noise / 128, 0, 255));
  }
}

struct Memory {
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
};

Memory draw_split(const Style& style, std::uint64_t seed, std::uint32_t stream,
                  std::int64_t count) {
  const auto image_bytes = static_cast<std::size_t>(style.image_bytes());
  const auto samples = static_cast<std::size_t>(count);
  Memory memory{.images = std::vector<std::uint8_t>(samples * image_bytes),
                .labels = std::vector<std::uint8_t>(samples)};
  const Philox random(seed, Purpose::synthetic, stream);
  // Equal classes in a random order: the order of a permutation that no epoch's shuffle can repeat.
  std::vector<std::int32_t> order = permutation(count, ~seed, stream);
  for (std::size_t i = 0; i < samples; ++i) {
    memory.labels[i] = static_cast<std::uint8_t>(order[i] % classes);
    draw_sample(style, random, i, memory.labels[i], &memory.images[i * image_bytes]);
  }
  return memory;
}

Split view(const Style& style, const Memory& memory) {
  return {.images = memory.images,
          .labels = memory.labels,
          .count = std::ssize(memory.labels),
          .height = style.side,
          .width = style.side,
          .channels = style.channels,
          .classes = classes};
}

ImageData draw(const Style& style, const SyntheticOptions& options) {
  for (std::int64_t count : {options.train, options.test}) {
    if (count < classes || count > 1'000'000) {
      fail({.found = "a synthetic split of " + std::to_string(count) + " images",
            .expected = "10 to 1000000"});
    }
  }
  auto memory = std::make_shared<std::array<Memory, 2>>(
      std::array{draw_split(style, options.seed, style.stream, options.train),
                 draw_split(style, options.seed, style.stream + 1, options.test)});
  return {.name = style.name,
          .origin = "drawn in memory, seed " + std::to_string(options.seed),
          .class_names = garment_names(),
          .train = view(style, (*memory)[0]),
          .test = view(style, (*memory)[1]),
          .bytes = memory};
}

}  // namespace

ImageData synthetic(const SyntheticOptions& options) { return draw(grey, options); }
ImageData synthetic_color(const SyntheticOptions& options) { return draw(coloured, options); }

}  // namespace arenite::data
