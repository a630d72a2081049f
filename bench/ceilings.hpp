// What this machine can do at most: the rulers of bench/compare.
#pragma once

#include <cstddef>
#include <memory>

namespace arenite::bench {

/// Products of matrices in single precision, on each of `workers` cores its own, all at once: what
/// arithmetic alone allows. The kernel is LIBXSMM's, made for the machine at hand.
class GemmCeiling {
 public:
  /// Throws Failure where there are fewer cores, or no kernel for this machine.
  explicit GemmCeiling(int workers);
  ~GemmCeiling();
  GemmCeiling(const GemmCeiling&) = delete;
  GemmCeiling& operator=(const GemmCeiling&) = delete;

  /// GFLOP/s of all cores together, over about so many seconds.
  double run(double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// GB/s of a = b + s·c over arrays of `bytes` in all, which should be some times the caches': 12
/// bytes an element, as STREAM counts. The best of some sweeps of all cores together.
double triad_bandwidth(int workers, std::size_t bytes);

/// Four times the last cache, as STREAM asks, but no more than a quarter of the memory.
std::size_t triad_bytes();

}  // namespace arenite::bench
