#pragma once

#include "codelets/cuda/qualifiers.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

/// Codes that check_loss writes to the status word.
enum class LossFault : std::uint32_t { nan = 1, infinite, below };

/// What the losses of a step add up to, lane by lane.
struct Losses {
  static constexpr int most = 64;  // lanes of a step
  const float* parts[most] = {};
  int count = 0;

  /// The code of what is wrong with them; 0 where they are finite.
  ARENITE_GPU std::uint32_t fault() const {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += *parts[i];
    if (sum != sum) return static_cast<std::uint32_t>(LossFault::nan);
    if (sum - sum == 0) return 0;
    return static_cast<std::uint32_t>(sum > 0 ? LossFault::infinite : LossFault::below);
  }
};

/// Which operands of an op hold losses that nobody has looked at yet.
struct CheckLoss {
  std::uint8_t operands[Losses::most] = {};
  int count = 0;
  bool renews = false;  ///< it hands on a learning rate
};

CheckLoss check_loss(const OpView& op);
Losses losses_of(const KernelCall& call, const CheckLoss& of);

std::vector<Kernel> check_loss_kernels();

}  // namespace arenite::codelets
