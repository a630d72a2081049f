// Small random decisions, the same on every machine. Compilers choose the order of a call's
// arguments: one of them at most may draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace arenite::oracle {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  /// 0 … end − 1; `end` is at least 1. Not std::uniform_int_distribution: that differs between
  /// libraries.
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_()) % end; }
  /// Both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  }
  bool chance(std::size_t percent) { return below(100) < percent; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_()) * 0x1p-32;
  }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[below(all.size())];
  }
  template <class T>
  T of(const std::vector<T>& all) {
    return all.at(below(all.size()));
  }

 private:
  std::mt19937 random_;
};

}  // namespace arenite::oracle
