// A trainer's programs over all splits it has seen: built whole, or not at all.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/runtime/program.hpp>
#include <arenite/train/trainer.hpp>

#include "src/train/compiled_step.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::train {

/// The programs over one split: whole batches, and the batch's remainder.
struct SplitPrograms {
  std::string name;  ///< of `whole`: "train", "evaluate.2"
  data::Split split;
  bool training = false;
  std::int64_t batch = 0;           ///< no larger than the split
  std::vector<std::int32_t> order;  ///< bound by address
  runtime::Program* whole = nullptr;
  runtime::Program* rest = nullptr;  ///< none when the batch divides the split
  graph::BatchCut cut;               ///< of `whole`, and so the next two
  int at_once = 1;                   ///< shards
  std::string undivided;             ///< why the batch is not cut
  std::string position;              ///< the input that counts what training has drawn; or none
};

/// Throws Error unless every sample of the split is there, of this shape, and enough of them for a
/// step.
void check_split(const data::Split& split, bool training, const Shape& image, std::int64_t batch);

/// What all programs of a trainer are made from. Borrowed.
struct TrainerSetup {
  const nn::Layer& model;
  const Shape& image;
  const TrainerOptions& options;
  const std::vector<Space>& spaces;
  int workers = 0;

  /// Of a step over a set of so many samples, where there are so many bytes of all sets.
  StepRequest request(const std::string& set, std::int64_t batch, std::int64_t dataset,
                      bool training, std::size_t bytes) const;
};

class TrainerPrograms {
 public:
  using Wanted = std::pair<data::Split, bool>;  ///< a checked split, and whether to train on it
  using State = std::map<std::pair<graph::StorageClass, std::string>, std::vector<std::byte>>;

  /// `state` holds the places that names already have.
  TrainerPrograms(runtime::Session& session, const TrainerSetup& setup, plan::StateLayout state,
                  const std::vector<Wanted>& wanted);

  /// What outlives a step: parameters, optimizer state, buffers.
  State save();
  /// Takes of that what these programs have too; what is new keeps its first value.
  void restore(State& state);

  SplitPrograms* find(const data::Split& split, bool training) noexcept;
  /// Whether a list has this split already.
  static bool has(const std::vector<Wanted>& list, const data::Split& split, bool training);
  /// Of the first split that is trained on; null: there is none.
  const SplitPrograms* training() const noexcept;
  /// What the programs of a split were made from, for so many samples.
  StepRequest request(const TrainerSetup& setup, const SplitPrograms& split,
                      std::int64_t batch) const;
  bool has_state(graph::StorageClass cls, std::string_view name) const noexcept;
  runtime::ProgramSet& set() noexcept { return *set_; }
  plan::StateLayout state() const { return state_; }

 private:
  void build(runtime::Session& session, const TrainerSetup& setup);

  std::vector<std::unique_ptr<SplitPrograms>> splits_;  // outlive the set, which reads their order
  plan::StateLayout state_;
  std::unique_ptr<runtime::ProgramSet> set_;
};

}  // namespace arenite::train
