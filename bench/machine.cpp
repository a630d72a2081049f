#include "bench/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>

namespace arenite::bench {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif

using Vector [[gnu::vector_size(vector_bytes)]] = float;

// Two units with a latency of four or five cycles need ten sums under way; sixteen registers must
// hold them and the factor.
constexpr int sums = 12;

/// Seconds for so many rounds of `sums` multiply-adds that depend on nothing but themselves.
double seconds_of(long rounds, float factor, float& sink) {
  Vector a[sums], x = Vector{} + factor;
  for (int i = 0; i < sums; ++i) a[i] = Vector{} + static_cast<float>(i);
  const auto start = std::chrono::steady_clock::now();
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < sums; ++i) a[i] = a[i] * x + x;
  }
  Vector total{};
  for (const Vector& sum : a) total += sum;
  sink += total[0];  // read before the clock, so that nothing may be left out
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

double fma_peak() {
  constexpr long rounds = 1'000'000;
  constexpr double flops = 2.0 * rounds * sums * (vector_bytes / sizeof(float));
  float sink = 0;
  double best = seconds_of(rounds, 0.5f, sink);
  for (int run = 1; run < 10; ++run) best = std::min(best, seconds_of(rounds, 0.5f, sink));
  volatile float kept = sink;
  static_cast<void>(kept);
  return flops / best * 1e-9;
}

}  // namespace arenite::bench
