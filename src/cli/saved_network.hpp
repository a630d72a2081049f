// The network of a file that `arenite train --save`, or a program, has written.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/model.hpp>
#include <arenite/runtime/session.hpp>
#include <arenite/train/saved_run.hpp>

#include "src/cli/command.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::cli {

/// What a run says beside itself of the images that it was trained on: the names of their set and
/// of its classes, and of the network.
SavedWords words_of(const data::ImageData& data, const std::string& model);

struct SavedNetworkArguments {
  std::string file;
  std::string device = "cpu";
  int workers = 0;  ///< 0: not given
};

/// FILE, --device and --workers.
void add_saved_network(Command& command, SavedNetworkArguments& arguments);
/// The last two.
void add_device(Command& command, std::string& device);
void add_workers(Command& command, int& workers);

class SavedNetwork {
 public:
  /// Throws Error on a file that has none.
  explicit SavedNetwork(const SavedNetworkArguments& arguments);

  train::Trainer& trainer() noexcept { return trainer_; }
  const std::vector<Port>& inputs() const noexcept { return inputs_; }
  /// "run.st: lenet5, step 470, 5 epochs done"
  std::string description() const;
  long steps() const noexcept { return run_.steps; }
  int epochs() const noexcept { return run_.epochs; }
  /// Empty where nobody has said.
  std::string dataset() const { return said("dataset"); }
  std::string model() const { return said("model"); }
  /// "Sneaker"; its number where nobody has said.
  std::string name_of(std::int64_t label) const;
  /// Where the run names no classes, these are.
  void take_names(const std::vector<std::string>& names);
  /// How many classes predictions are scores of: as many as are named, in real numbers; else 0.
  std::int64_t classes() const;

 private:
  std::string said(std::string_view name) const;

  std::string file_;
  train::SavedRun run_;
  runtime::Session session_;
  train::Trainer trainer_;
  std::vector<Port> inputs_;
  std::vector<std::string> names_;
};

}  // namespace arenite::cli
