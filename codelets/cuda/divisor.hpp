// Division of indices by a number that is known before a grid starts: a multiplication and a shift,
// where a GPU's own takes some twenty instructions.
#pragma once

#include "codelets/cuda/qualifiers.hpp"

#include <bit>
#include <cstdint>

namespace arenite::codelets::cuda {

/// Exact for all indices below 2^31, by any number from 1 to 2^31 (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t by)
      : by_(static_cast<std::int32_t>(by)),
        shift_(31 + std::bit_width(static_cast<std::uint64_t>(by - 1))),
        factor_(static_cast<std::uint32_t>(
            ((std::uint64_t{1} << shift_) + static_cast<std::uint64_t>(by - 1)) /
            static_cast<std::uint64_t>(by))) {}

  ARENITE_GPU std::int32_t quotient(std::int32_t index) const {
    return static_cast<std::int32_t>(
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(index)) * factor_ >> shift_);
  }

  struct Parts {
    std::int32_t quotient, remainder;
  };
  ARENITE_GPU Parts parts(std::int32_t index) const {
    const std::int32_t q = quotient(index);
    return {q, index - q * by_};
  }

  ARENITE_GPU std::int32_t value() const { return by_; }

 private:
  std::int32_t by_ = 1, shift_ = 31;
  std::uint32_t factor_ = std::uint32_t{1} << 31;
};

}  // namespace arenite::codelets::cuda
