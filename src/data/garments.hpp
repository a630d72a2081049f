// The drawn garments of the synthetic set: outlines on a board of 256×256, varied by dice.
#pragma once

#include "src/data/canvas.hpp"

#include <arenite/random.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::data {

/// One sample's random numbers, drawn in order.
class Dice {
 public:
  Dice(const Philox& random, std::uint64_t first) : random_(&random), next_(first) {}

  /// An integer in [low, high].
  int roll(int low, int high) {
    const auto span = static_cast<std::uint32_t>(high - low + 1);
    return low + static_cast<int>(std::uint64_t{span} * random_->bits(next_++) >> 32);
  }
  bool chance(int percent) { return roll(1, 100) <= percent; }

 private:
  const Philox* random_;
  std::uint64_t next_;
};

enum class Finish : std::uint8_t {
  cloth,  ///< the sample's colour and pattern
  plain,  ///< the sample's colour times `tone` percent
  hole,   ///< back to the background
};

struct Part {
  Polygon outline;  ///< board coordinates
  Finish finish = Finish::cloth;
  int tone = 100;
};

/// The parts of garment `label` (0…9, Fashion-MNIST's order), to be painted in order.
std::vector<Part> draw_garment(int label, Dice& dice);

std::vector<std::string> garment_names();  ///< in the order of their labels

}  // namespace arenite::data
