#include "bench/ceilings.hpp"

#include <arenite/error.hpp>

#include <libxsmm.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace arenite::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int> own_cores(int workers) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  if (static_cast<int>(cores.size()) < workers) {
    throw Failure({.found = std::to_string(cores.size()) + " cores for this process",
                   .expected = std::to_string(workers)});
  }
  cores.resize(static_cast<std::size_t>(workers));
  return cores;
}

/// `work(i)` on each core at once, each in a thread that stays there.
void on_each(const std::vector<int>& cores, const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cores[i], &one);
      sched_setaffinity(0, sizeof one, &one);
      work(i);
    });
  }
}

// Blocks of the packed matrices, all of which fit the second cache.
constexpr int rows = 64, columns = 24, depth = 256;
constexpr int row_blocks = 4, column_blocks = 8, depth_blocks = 2;
constexpr double product_flops =
    2.0 * rows * row_blocks * columns * column_blocks * depth * depth_blocks;

/// Floats that begin with a cache line.
class Aligned {
 public:
  Aligned(std::size_t count, float value) : lines_((count + 15) / 16) {
    std::fill_n(data(), count, value);
  }
  float* data() { return lines_.front().data(); }

 private:
  struct alignas(64) Line : std::array<float, 16> {};
  std::vector<Line> lines_;
};

struct Matrices {
  static constexpr std::size_t block_a = std::size_t{rows} * depth,
                               block_b = std::size_t{depth} * columns,
                               block_c = std::size_t{rows} * columns;
  Aligned a{block_a * row_blocks * depth_blocks, 0.5f};
  Aligned b{block_b * depth_blocks * column_blocks, 0.25f};
  Aligned c{block_c * row_blocks * column_blocks, 0.0f};

  void product(libxsmm_smmfunction kernel) {
    for (std::size_t j = 0; j < column_blocks; ++j) {
      for (std::size_t i = 0; i < row_blocks; ++i) {
        float* to = c.data() + (j * row_blocks + i) * block_c;
        std::fill_n(to, block_c, 0.0f);
        for (std::size_t k = 0; k < depth_blocks; ++k) {
          kernel(a.data() + (i * depth_blocks + k) * block_a,
                 b.data() + (j * depth_blocks + k) * block_b, to);
        }
      }
    }
  }
};

}  // namespace

struct GemmCeiling::Impl {
  std::vector<int> cores;
  std::vector<Matrices> matrices;
  libxsmm_smmfunction kernel = nullptr;
};

GemmCeiling::GemmCeiling(int workers) : impl_(std::make_unique<Impl>()) {
  impl_->cores = own_cores(workers);
  impl_->matrices.resize(impl_->cores.size());
  impl_->kernel = libxsmm_smmdispatch(rows, columns, depth, nullptr, nullptr, nullptr, nullptr,
                                      nullptr, nullptr, nullptr);
  if (!impl_->kernel) {
    throw Failure({.found = "no LIBXSMM kernel for this machine", .expected = "one"});
  }
}
GemmCeiling::~GemmCeiling() = default;

double GemmCeiling::run(double seconds) {
  std::vector<double> rates(impl_->cores.size());
  std::barrier together(static_cast<std::ptrdiff_t>(rates.size()));
  on_each(impl_->cores, [&](std::size_t i) {
    Matrices& mine = impl_->matrices[i];
    mine.product(impl_->kernel);
    together.arrive_and_wait();
    const auto start = Clock::now();
    long products = 0;
    do {
      mine.product(impl_->kernel);
      ++products;
    } while (seconds_since(start) < seconds);
    rates[i] = static_cast<double>(products) * product_flops / seconds_since(start) * 1e-9;
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

std::size_t triad_bytes() {
  const long cache = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  const long memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return static_cast<std::size_t>(std::min(4 * std::max(cache, 1L << 25), memory / 4));
}

double triad_bandwidth(int workers, std::size_t bytes) {
  const std::vector<int> cores = own_cores(workers);
  const std::size_t size = bytes / 3 / sizeof(float) / cores.size();  // of one core's arrays
  constexpr int sweeps = 6;
  std::vector<double> seconds(sweeps);
  std::barrier together(static_cast<std::ptrdiff_t>(cores.size()));
  on_each(cores, [&](std::size_t core) {
    std::vector<float> a(size), b(size, 1.0f), c(size, 2.0f);
    for (double& sweep : seconds) {
      together.arrive_and_wait();
      const auto start = Clock::now();
      float* to = a.data();
      const float *from = b.data(), *scaled = c.data();
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) to[i] = from[i] + 3.0f * scaled[i];
      together.arrive_and_wait();
      if (core == 0) sweep = seconds_since(start);
      std::swap(a, b);  // so that no sweep is like the one before
    }
  });
  const double best = *std::min_element(seconds.begin(), seconds.end());
  return static_cast<double>(3 * sizeof(float) * size * cores.size()) / best * 1e-9;
}

}  // namespace arenite::bench
