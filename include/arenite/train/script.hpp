// Networks that scripts say (docs/scripts.md), trained as those that C++ builds.
//
//   $1 = InputTensor(x, float32, [N<=64, 784]);
//   …
//   train($9, optimizer=adam, learning_rate=0.001);
//   entry predict = $8;
//   entry mae = $12;
//   result = _;
//
// The script's size of a batch is open, and at most what it says; or it is known, and all steps are
// on as many samples. `train` has the loss and how parameters change; the entry `predict` has the
// predictions; an entry of one or two float64 [1] is a metric of its name: a sum over the batch, by
// samples or by the second sum. What else the script gives is not asked for.
#pragma once

#include <arenite/train/objective.hpp>
#include <arenite/train/optimizer.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace arenite::train {

struct Script {
  Build build;
  optim::Optimizer optimizer;  ///< of its train statement
  std::int64_t most = 0;       ///< samples of a step: of all batches that it adds up
  bool is_known = false;       ///< steps are on as many samples, and no fewer
};

/// Throws Error on whatever is wrong with the script, on one that does not train, on inputs that
/// are of no batch, or not of one, and on constants, whose bytes nobody has.
Script read_script(std::string_view text, std::string_view filename = "<script>");

/// A network whose text depends on the samples of a step, which is at most `most`: `text_for` says
/// it for each number that there is. All of them are to keep the same. Throws Error as
/// `read_script`, and what `text_for` throws; so does the network's `build`.
Script read_scripts(std::function<std::string(std::int64_t samples)> text_for, std::int64_t most);

}  // namespace arenite::train
