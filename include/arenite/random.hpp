// Random numbers that no schedule can change: Philox4x32-10, counter-based.
//
// A number is a pure function of (seed, purpose, stream, index). There is no state to share, so
// every function here may be called from any thread, in any order, and none allocates except the
// `permutation` that returns a vector. Integers, permutations and floats in [0, 1) are the same
// bits on every machine.
//
// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace arenite {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// The bare generator: 128 random bits for a 128-bit counter under a 64-bit key.
constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Keeps users of one seed apart. `Purpose{1000}` and above are free for code outside the library.
enum class Purpose : std::uint16_t {
  initialise = 1,
  shuffle,
  dropout,
  augment,
  synthetic,
  planning
};

/// A sequence of random numbers addressed by index. A small value: make one where it is needed.
class Philox {
 public:
  /// `stream` tells sequences of one purpose apart: a parameter's number, an epoch, a split.
  constexpr explicit Philox(std::uint64_t seed, Purpose purpose, std::uint32_t stream = 0) noexcept
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        stream_(stream),
        purpose_(static_cast<std::uint32_t>(purpose)) {}

  /// Words 4·`block` … 4·`block`+3 at once: the cheap way to fill a buffer.
  constexpr PhiloxCounter block(std::uint64_t block) const noexcept { return draw(block, 0); }

  /// Word `index`, uniform over all 32-bit values.
  constexpr std::uint32_t bits(std::uint64_t index) const noexcept {
    return block(index / 4)[index % 4];
  }

  /// Word `index` as a float in [0, 1), a multiple of 2^-24.
  constexpr float uniform(std::uint64_t index) const noexcept {
    return static_cast<float>(bits(index) >> 8) * 0x1p-24f;
  }

  /// Word `index` as a float in [low, high); `low` < `high`, both finite, else the result is `low`.
  float uniform(std::uint64_t index, float low, float high) const noexcept;

  /// An integer in [0, bound), every one exactly as likely; 0 where `bound` is 0.
  /// Independent of the words that `bits` and `uniform` give for the same index.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const noexcept;

 private:
  // `domain` 0 holds the words, 1 and up the attempts of `below`.
  constexpr PhiloxCounter draw(std::uint64_t index, std::uint32_t domain) const noexcept {
    return philox4x32_10(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream_,
         purpose_ | domain << 16},
        key_);
  }

  PhiloxKey key_;
  std::uint32_t stream_;
  std::uint32_t purpose_;
};

/// Fills `order` with a uniformly random permutation of 0 … size-1 (at most 2^31-1): the order in
/// which epoch `epoch` visits the samples. Does not allocate. Throws Error when `order` is too
/// long.
void permutation(std::span<std::int32_t> order, std::uint64_t seed, std::uint32_t epoch);

/// The same in a vector of its own. Throws Error when `count` is negative or above 2^31-1.
std::vector<std::int32_t> permutation(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

}  // namespace arenite
