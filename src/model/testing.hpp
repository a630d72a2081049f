// What tests of models share.
#pragma once

#include <arenite/model.hpp>

#include "src/base/testing.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace arenite::testing {

using Floats = std::vector<float>;

template <class T>
NamedBytes named(std::string_view name, const std::vector<T>& values) {
  return {name, values.data(), static_cast<std::int64_t>(values.size() * sizeof(T))};
}

/// Splits whatever it can, in four shards.
inline ModelOptions four_shards() {
  ModelOptions options;
  options.target.two_lanes_microseconds = options.target.four_shards_microseconds = 0;
  return options;
}

}  // namespace arenite::testing
