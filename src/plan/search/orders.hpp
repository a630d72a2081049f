// In which order the exact search prefers one item over another.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"
#include "src/plan/search/sections.hpp"

namespace arenite::plan {

/// A rank for each item, 0 first; all different. The first few orders are those that MiniMalloc
/// found best (Moffitt and Fernando, "MiniMalloc: a lightweight memory allocator for
/// hardware-accelerated machine learning", ASPLOS 2023); the others are drawn, a pure function of
/// `number`. Integers throughout: the same on every machine.
class Orders {
 public:
  Orders(const Instance& instance, const Sections& sections);

  std::vector<std::uint32_t> ranks(std::uint32_t number) const;

 private:
  struct Features {
    std::int32_t bytes = 0;  // these are logarithms
    std::int32_t lifetime = 0;
    std::int32_t sections = 0;
    std::int32_t tightest = 0;  // most bytes of a section that it is in
  };
  std::vector<Features> features_;
};

}  // namespace arenite::plan
