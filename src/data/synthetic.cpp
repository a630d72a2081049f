#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include "src/data/canvas.hpp"
#include "src/data/garments.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace arenite::data {
namespace {

constexpr int classes = 10;
constexpr int side = Canvas::size;
constexpr int image_bytes = side * side;

// Words of randomness a sample: its dice, then a byte of noise a pixel.
constexpr std::uint64_t words_a_sample = 512;
constexpr std::uint64_t noise_word = 256;
static_assert(noise_word + image_bytes / 4 <= words_a_sample);

// Brightness of cloth at a pixel, in percent of the sample's colour.
struct Pattern {
  int kind = 0;  // plain, rows, columns, checks, diagonals
  int period = 4;
  int phase = 0;
  int contrast = 0;

  int operator()(int x, int y) const noexcept {
    const auto dark = [this](int position) { return (position + phase) % period < period / 2; };
    bool shaded = false;
    switch (kind) {
      case 1:
        shaded = dark(y);
        break;
      case 2:
        shaded = dark(x);
        break;
      case 3:
        shaded = dark(x) != dark(y);
        break;
      case 4:
        shaded = dark(x + y);
        break;
      default:
        break;
    }
    return shaded ? 100 - contrast : 100;
  }
};

Pattern roll_pattern(Dice& dice) {
  return {.kind = dice.roll(0, 7),
          .period = dice.roll(3, 8),
          .phase = dice.roll(0, 7),
          .contrast = dice.roll(15, 60)};
}

Affine roll_placement(Dice& dice) {
  // 24 of the 28 pixels at full size: a board unit is 24/256 pixel, so 24·256 in 1/256 of 1/256
  // pixel.
  const int wide = 24 * dice.roll(190, 282);
  const int high = 24 * dice.roll(200, 276);
  const int flip = dice.chance(50) ? -1 : 1;
  return {.xx = flip * wide,
          .xy = wide * dice.roll(-36, 36) / 256,
          .yx = flip * high * dice.roll(-20, 20) / 256,
          .yy = high,
          .shift_x = side * 128 + dice.roll(-600, 600),
          .shift_y = side * 128 + dice.roll(-600, 600)};
}

void paint(const Part& part, const Affine& place, int colour, const Pattern& pattern,
           std::array<int, image_bytes>& image) {
  Polygon outline = part.outline;
  for (Point& p : outline) p = place(p);
  const Canvas::Coverage coverage = Canvas::coverage(outline);
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (coverage[i] == 0) continue;
    const int x = static_cast<int>(i) % side, y = static_cast<int>(i) / side;
    const int tone = part.finish == Finish::cloth   ? colour * pattern(x, y) / 100
                     : part.finish == Finish::plain ? colour * part.tone / 100
                                                    : 0;
    image[i] += (tone - image[i]) * coverage[i] / Canvas::full;
  }
}

void draw_sample(const Philox& random, std::uint64_t sample, int label, std::uint8_t* out) {
  Dice dice(random, sample * words_a_sample);
  const Affine place = roll_placement(dice);
  const int colour = dice.roll(70, 240);
  const Pattern pattern = roll_pattern(dice);
  const int light = dice.roll(-40, 40);  // percent more or less at the right edge
  const int noise = dice.roll(4, 32);
  std::array<int, image_bytes> image{};
  PhiloxCounter words{};
  for (const Part& part : draw_garment(label, dice)) paint(part, place, colour, pattern, image);

  const std::uint64_t first = (sample * words_a_sample + noise_word) / 4;
  for (std::size_t i = 0; i < image.size(); ++i) {
    // Sixteen bytes of noise a block of four words.
    if (i % 16 == 0) words = random.block(first + i / 16);
    const int byte = static_cast<int>(words[i % 16 / 4] >> (8 * (i % 4)) & 255);
    const int x = static_cast<int>(i) % side;
    const int lit = image[i] * (100 + light * (2 * x - side) / side) / 100;
    out[i] = static_cast<std::uint8_t>(std::clamp(lit + (byte - 128) * noise / 128, 0, 255));
  }
}

struct Memory {
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
};

Memory draw_split(std::uint64_t seed, std::uint32_t stream, std::int64_t count) {
  Memory memory{.images = std::vector<std::uint8_t>(static_cast<std::size_t>(count * image_bytes)),
                .labels = std::vector<std::uint8_t>(static_cast<std::size_t>(count))};
  const Philox random(seed, Purpose::synthetic, stream);
  // Equal classes in a random order: the order of a permutation that no epoch's shuffle can repeat.
  std::vector<std::int32_t> order = permutation(count, ~seed, stream);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    memory.labels[at] = static_cast<std::uint8_t>(order[at] % classes);
    draw_sample(random, at, memory.labels[at], &memory.images[at * image_bytes]);
  }
  return memory;
}

Split view(const Memory& memory) {
  return {.images = memory.images,
          .labels = memory.labels,
          .count = std::ssize(memory.labels),
          .height = side,
          .width = side,
          .channels = 1,
          .classes = classes};
}

}  // namespace

ImageData synthetic(const SyntheticOptions& options) {
  for (std::int64_t count : {options.train, options.test}) {
    if (count < classes || count > 1'000'000) {
      fail({.found = "a synthetic split of " + std::to_string(count) + " images",
            .expected = "10 to 1000000"});
    }
  }
  auto memory = std::make_shared<std::array<Memory, 2>>(std::array{
      draw_split(options.seed, 0, options.train), draw_split(options.seed, 1, options.test)});
  return {.name = "synthetic",
          .origin = "drawn in memory, seed " + std::to_string(options.seed),
          .class_names = garment_names(),
          .train = view((*memory)[0]),
          .test = view((*memory)[1]),
          .bytes = memory};
}

}  // namespace arenite::data
