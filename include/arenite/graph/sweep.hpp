// Sweeps: a graph that draws its inputs from a data set itself, batch after batch, and adds up what
// it gives, or keeps it row by row.
//
// Inputs become draws of rows of constants, in an order that is a constant too, from a cursor on,
// which is an input and counts. They touch nothing else, so a step's are made behind the step
// before it. Outputs are added to buffers, which begin with zeros, or put among those of all
// samples: nobody looks at them after each step.
#pragma once

#include <arenite/graph/builder.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::graph {

/// Where an input [N, …] comes from.
struct DrawnInput {
  std::string input;
  std::string data;             ///< name of the constant [M, …] that has all samples
  DType type = DType::float32;  ///< of that
  double scale = 1;             ///< of inputs of real numbers
};

struct Sweep {
  std::vector<DrawnInput> inputs;
  std::int64_t samples = 0;       ///< of the data set
  std::string order = "order";    ///< name of the constant int32 [samples]
  std::string cursor = "cursor";  ///< of the input int64 [1]
  /// Name of the constant int64 [1] that is 0: devices draw by themselves, from data in their
  /// memory, and are sent which samples. Empty: a CPU worker draws, and what is drawn is copied.
  std::string first = {};
  /// Name of a buffer [samples, …] that keeps the only output [N, …], a row a sample, in the order
  /// in which they are drawn. Empty: outputs are added up.
  std::string rows = {};
};

/// The graph of a sweep, at the bounds of sizes that are left open. Each output goes to a buffer of
/// its name, "output_0" where it has none. Throws Error where an input is none of the graph, or not
/// of a batch, where `draw` refuses it, and on rows of an output that has none, of several outputs,
/// and in a buffer that there is already.
Graph swept(const Graph& graph, const OperatorTable& table, const Sweep& sweep);

}  // namespace arenite::graph
