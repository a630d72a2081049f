#include <arenite/random.hpp>

#include "tests/reference/rules.hpp"

namespace arenite::reference {
namespace {

/// A number from 0 to below 1: a counter of Philox gives four, for elements 16 apart.
float number(std::uint64_t element, std::uint64_t key) {
  const std::uint64_t counter = element / 64 * 16 + element % 16;
  const PhiloxCounter words = philox4x32_10(
      {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  return static_cast<float>(words[element % 64 / 16] >> 8) * 0x1p-24f;
}

void dropout_in_training(Call& call) {
  const Tensor& x = call.in(0);
  const double rate = call.attributes().real("rate");
  const std::int64_t rows = x.shape.rank() > 0 ? x.shape[0] : 1,
                     elements = rows > 0 ? x.shape.elements() / rows : 0,
                     first = static_cast<std::int64_t>(call.in(1)[0]) *
                                 call.attributes().integer("rows") +
                             call.attributes().integer("first");
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    const float drawn = number(static_cast<std::uint64_t>(first * elements + i),
                               static_cast<std::uint64_t>(call.attributes().integer("key")));
    const bool stays = drawn >= static_cast<float>(rate);
    call.out(0)[i] = stays ? x[i] / (1 - rate) : 0;
  }
}

}  // namespace

void add_dropout_rules(Rules& rules) { rules["dropout_in_training"] = dropout_in_training; }

}  // namespace arenite::reference
