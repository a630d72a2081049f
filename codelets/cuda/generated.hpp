// GPU kernels of which the source is made while a program is built.
//
// With nvcc they are compiled by NVRTC; where grids are loops, by the machine's C++ compiler
// (tests/generated_loops.cpp), so that tests run the same source on machines without a GPU.
#pragma once

#include "codelets/cuda/qualifiers.hpp"
#include "codelets/words.hpp"

#include <span>
#include <string>
#include <string_view>

namespace arenite::codelets::cuda {

/// Up to so many parameters a kernel may have: the oldest GPUs take 4 KiB.
constexpr std::size_t most_parameters = 500;

/// Whether indices below it fit an int, and one more stride of a grid behind them.
constexpr bool is_narrow(std::int64_t count) noexcept { return count < std::int64_t{1} << 30; }

/// The source of a kernel that runs `body` once for each `i`, an `Index` below `count`, and reads
/// `parameters`: "const float* in, float* out". `preamble` stands before it.
std::string source_of_each(std::string_view preamble, std::string_view parameters,
                           std::string_view body, std::int64_t count);

inline namespace ARENITE_GRIDS {

/// A kernel of such a source, for as long as the process.
class Each {
 public:
  /// Compiles it, or finds it compiled. Throws Error.
  explicit Each(const std::string& source);

  /// As `for_each`. `parameters` are addresses of the parameters' values; allocates nothing.
  void launch(const KernelCall& call, std::int64_t count,
              std::span<void* const> parameters) const noexcept;

 private:
  const void* kernel_ = nullptr;
  bool waits_ = false;  ///< for what stands before it in its stream
};

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::cuda
