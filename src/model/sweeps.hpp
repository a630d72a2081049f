// Sweeps of a model over data sets: programs that draw their samples themselves, batch after batch,
// and add up what an entry gives, or keep its rows. Steps of one touch no byte of the host's, so
// that they follow each other without it.
//
// They share states and blocks with all other programs of their model. Those that there are stay
// where new ones do not fit: then the blocks grow.
#pragma once

#include <arenite/model.hpp>
#include <arenite/runtime/program.hpp>
#include <arenite/samples.hpp>

#include "src/compile/compile.hpp"
#include "src/model/plans.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite {

/// An entry over samples: whole batches, and what is left of the last one.
struct Swept {
  std::string name;  ///< of `whole`: "train", "evaluate.2"
  std::string entry;
  Samples samples;         ///< borrowed
  bool staged = false;     ///< samples' bytes are rewritten between steps, and stay on the host
  bool rows = false;       ///< of outputs are kept; else these are added up
  std::int64_t batch = 0;  ///< no larger than the samples
  std::vector<std::int32_t>
      order;  ///< bound by address: may be rewritten when no step is under way
  runtime::Program* whole = nullptr;
  runtime::Program* rest = nullptr;  ///< none where the batch divides the samples
  graph::BatchCut cut;               ///< of `whole`, and so the next two
  int at_once = 1;                   ///< shards
  std::string undivided;             ///< why the batch is not cut
  std::string position;              ///< the input that counts what training has drawn; or none
};

class Sweeps {
 public:
  struct Wanted {
    std::string entry;
    Samples samples;
    bool staged = false;  ///< their bytes may be rewritten when no step is under way
    bool rows = false;    ///< of outputs are kept, in buffers that `rows_of` gives
  };

  /// A model whose programs are made when samples come, and that is planned as if they were
  /// `like`. Its batch is the size of that name. As the constructor of Model.
  static Model opened(runtime::Session& session, graph::Graph graph, ModelPlans::GraphAt at,
                      const ModelOptions& options, std::string batch, const Wanted& like);

  explicit Sweeps(Model& model);

  /// All of these exist afterwards, or nothing has changed. Throws Error on samples that the entry
  /// does not take.
  void prepare(const std::vector<Wanted>& wanted);
  bool has(const Samples& samples) const noexcept;
  /// Ends all that there are over these samples. What only they have of the state is lost.
  void release(const Samples& samples);
  /// Null: there is none yet.
  Swept* find(std::string_view entry, const Samples& samples) noexcept;
  /// In whole batches.
  const Swept* first(std::string_view entry) const noexcept;
  /// Of the first output, of all samples that a sweep has drawn: dense, in their order. Valid until
  /// the next step.
  std::span<const std::byte> rows_of(const Swept& swept);

  /// The first entry's program over the samples that the model was opened with.
  const compile::Compiled& preview() const noexcept;
  /// What passes did to one, with remarks; none: to the preview.
  compile::Report report(const Swept* swept) const;

  /// Null before there is any program.
  runtime::ProgramSet* set() const noexcept;
  /// Whether programs that there are have it.
  bool has_state(graph::StorageClass cls, std::string_view name) const noexcept;

 private:
  Swept begun(const Wanted& wanted, std::string name) const;
  SweepProgram program_of(const Swept& swept, std::int64_t batch, bool on_devices) const;
  void build(std::list<Swept>& made);

  Model::Impl& impl_;
};

}  // namespace arenite
