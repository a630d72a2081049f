// Kernels that were found to be the fastest for ops, on one machine: what it measured, kept in a
// file, so that every later run takes the same ones and repeats their bits.
//
//   {"format": "arenite kernel choices 1", "measured_on": "NVIDIA H100", "choices": [
//     {"op": "relu(float32 [64, 128])", "device": "cuda", "compute": "float32", "kernel": "own"}]}
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/runtime/kernel.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace arenite::runtime {

class KernelChoices {
 public:
  /// Reads what `write` wrote. Throws Error, which says where in the file, on anything else.
  static KernelChoices read(const std::filesystem::path& file);
  /// The file is whole, or as it was. Throws Error.
  void write(const std::filesystem::path& file) const;

  /// For ops of this operator, of these operands' types and shapes, and of these attributes.
  void set(const graph::OpView& op, DeviceKind device, Compute compute, std::string kernel);
  /// The kernel's name; nullptr: nobody chose one.
  const std::string* find(const graph::OpView& op, DeviceKind device, Compute compute) const;

  bool empty() const noexcept { return kernels_.empty(); }
  std::size_t size() const noexcept { return kernels_.size(); }
  /// How many of them ops have, of a graph whose kernels were selected for products in `compute`: 0
  /// where all are of other shapes.
  std::size_t taken_by(const graph::Graph& graph, Compute compute) const;
  /// For messages: the file that they were read from.
  const std::string& origin() const noexcept { return origin_; }

  std::string measured_on;  ///< for people

  /// "conv2d(float32 [64, 28, 28, 1], float32 [3, 3, 1, 4], _, padding=[1, 1])".
  static std::string describe(const graph::OpView& op);

 private:
  using Key = std::tuple<std::string, DeviceKind, Compute>;
  std::map<Key, std::string> kernels_;
  std::string origin_;
};

}  // namespace arenite::runtime
