// The programs of a model before they run: by entry and sizes, over one set of blocks.
//
// The blocks are those of the largest sizes. A program of smaller ones is planned for itself, which
// nearly always fits; where it does not, its batch is cut as that of the largest. Where that does
// not fit either, as its ops may be fused and ordered in another way, the blocks have to grow.
// Pure: what models run, and `arenite plan` shows.
#pragma once

#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/plan/step_plan.hpp>

#include "src/compile/compile.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace arenite {

/// How a program has come to fit in the blocks.
enum class Fit {
  own_plan,
  cut_of_largest,  ///< with its shards and lanes
  grown_blocks,    ///< they have to become larger
};

std::string_view to_string(Fit fit) noexcept;

class ModelPlans {
 public:
  /// A way to run the graph.
  enum class Entry { train, evaluate, averaged };

  /// Of a graph with all sizes at their bounds, or left open.
  ModelPlans(graph::Graph graph, std::string name, compile::Options how);

  /// That the graph has, "train" first, if there is one: it has all states.
  std::vector<Entry> entries() const;
  const graph::SizeValues& bounds() const noexcept { return bounds_; }
  const graph::Graph& graph() const noexcept { return graph_; }
  /// The graph of a run; throws Error as graph::at_sizes does.
  graph::Graph graph_at(const graph::SizeValues& sizes) const;

  /// What the blocks have, by now.
  const std::vector<runtime::BlockRoom>& room() const noexcept { return room_; }

  /// The program of an entry at its bounds: of all entries, before those of other sizes.
  compile::Compiled largest(Entry entry);

  struct Sized {
    compile::Compiled program;
    Fit fit = Fit::own_plan;
  };
  /// One of sizes that were given a graph.
  Sized smaller(Entry entry, const graph::SizeValues& sizes, const graph::Graph& graph);

 private:
  struct Largest {
    Entry entry;
    graph::BatchCut cut;
    int at_once;
  };

  compile::Entry named(Entry entry, const graph::SizeValues& sizes) const;
  bool fits(const runtime::ProgramSpec& spec) const;
  void make_room(const runtime::ProgramSpec& spec);

  graph::Graph graph_;
  std::string name_;
  compile::Options how_;
  graph::SizeValues bounds_;
  plan::StateLayout state_;
  std::vector<Largest> largest_;
  std::vector<runtime::BlockRoom> room_;
};

std::string_view to_string(ModelPlans::Entry entry) noexcept;

}  // namespace arenite
