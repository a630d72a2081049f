// The graph of an objective.
#pragma once

#include <arenite/train/objective.hpp>
#include <arenite/train/optimizer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arenite::train {

/// A metric, by outputs of the graph.
struct OutputMetric {
  std::string name;
  std::size_t output = 0, element = 0;
  std::optional<std::size_t> count_output = {};
  std::size_t count_element = 0;
  double each = 1;

  friend bool operator==(const OutputMetric&, const OutputMetric&) = default;
};

/// Throws Error where a network for another batch has other metrics than the first one: they add up
/// to one number.
void expect_same(const std::vector<OutputMetric>& metrics, const std::vector<OutputMetric>& others,
                 std::int64_t batch);

/// The batch's size, in graphs of inputs whose samples it names.
inline constexpr const char* batch_size = "N";

/// Entries of what has predictions: by the means that training keeps, or by the parameters where
/// there is no other; and by these where there are means.
inline constexpr const char *predict_name = "predict", *predict_current_name = "predict_current";

struct Network {
  /// Its outputs are sums over a batch, its inputs [N<=batch, …], and those are entries.
  graph::Graph graph;
  std::vector<OutputMetric> metrics;
};

struct NetworkOptions {
  std::int64_t batch = 0;
  bool training = true;  ///< else its ops are those of an evaluation
  /// In which all parameters begin that layers let begin at random, as ±range.
  std::optional<float> init_range = {};
};

/// The network as read_script takes one.
std::string script_of(const Network& network);

/// Throws Error on an objective that is none.
Network network_of(const Build& build, const optim::Optimizer& optimizer,
                   const NetworkOptions& options);

}  // namespace arenite::train
