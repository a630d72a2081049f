// The programs of a model before they run: by entry and sizes, over one set of blocks.
//
// The blocks are those of the largest sizes. A program of smaller ones is planned for itself, which
// nearly always fits; where it does not, its batch is cut as that of the largest. Where that does
// not fit either, as its ops may be fused and ordered in another way, the blocks have to grow.
// Pure: what models run, and `arenite plan` shows.
#pragma once

#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/sweep.hpp>
#include <arenite/plan/step_plan.hpp>

#include "src/compile/compile.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite {

/// How a program has come to fit in the blocks.
enum class Fit {
  own_plan,
  cut_of_largest,  ///< with its shards and lanes
  grown_blocks,    ///< they have to become larger
};

std::string_view to_string(Fit fit) noexcept;

/// A program of an entry, which has one, or one for each part that a step may have in an update
/// (graph::BatchOfUpdate).
struct Way {
  std::string name;
  std::size_t entry = 0;
  std::optional<graph::BatchOfUpdate> part = {};  ///< as in compile::Entry
  bool is_rare = false;                           ///< an update before all its batches are there
};

/// A program that draws its samples itself, and adds up what it gives.
struct SweepProgram {
  std::size_t way = 0;
  graph::SizeValues sizes;
  graph::Sweep sweep;
  std::string name, entry;  ///< as of runtime::ProgramSpec
};

class ModelPlans {
 public:
  /// What an entry runs at sizes, where that is no more than the graph at these.
  using GraphAt = std::function<graph::Graph(std::string_view entry, const graph::SizeValues&)>;

  /// Of a graph with all sizes at their bounds, or left open; `at` builds it for others, and may
  /// be absent.
  ModelPlans(graph::Graph graph, std::string name, compile::Options how, GraphAt at = {});

  /// Ways to run the graph: "train", "accumulate", "evaluate" and "averaged", as it has them, and
  /// its own entries.
  const std::vector<std::string>& entries() const noexcept { return entries_; }
  /// Programs of all entries. The first has all states.
  const std::vector<Way>& ways() const noexcept { return ways_; }
  /// Which of them an entry runs, by number, when `accumulated` batches wait for an update.
  std::size_t way(std::size_t entry, std::int64_t accumulated) const;
  /// Whether the graph declares it.
  bool is_own(std::string_view entry) const;
  /// Whether it computes with the means that training keeps.
  bool is_averaged(std::string_view entry) const;
  const std::vector<Space>& spaces() const noexcept { return how_.spaces; }
  const graph::SizeValues& bounds() const noexcept { return bounds_; }
  const graph::Graph& graph() const noexcept { return graph_; }
  /// What an entry runs. Throws Error as graph::at_sizes does.
  graph::Graph graph_of(const std::string& entry, const graph::SizeValues& sizes) const;

  /// What the blocks have, by now; and what they would have with more programs.
  const std::vector<runtime::BlockRoom>& room() const noexcept { return room_; }
  std::vector<runtime::BlockRoom> room_with(std::span<const runtime::ProgramSpec> specs) const;
  /// Once they have it.
  void set_room(std::vector<runtime::BlockRoom> room) { room_ = std::move(room); }

  /// One at its bounds: of all but rare ones, before those of other sizes.
  compile::Compiled largest(const Way& way);

  struct Sized {
    compile::Compiled program;
    Fit fit = Fit::own_plan;
  };
  /// One of these sizes, or a rare one.
  Sized smaller(const Way& way, const graph::SizeValues& sizes);

  /// With its plan; its state goes among that of all others.
  compile::Compiled sweeping(const SweepProgram& program);
  /// The same by itself: what it would be if there were no other. `remarks` as in compile::Options.
  compile::Compiled sweeping_alone(const SweepProgram& program, bool remarks = false) const;
  /// Where states lie, and what the blocks have, of all programs so far.
  struct Places {
    plan::StateLayout state;
    std::vector<runtime::BlockRoom> room;
  };
  Places places() const { return {state_, room_}; }
  void set_places(Places places) {
    state_ = std::move(places.state);
    room_ = std::move(places.room);
  }
  /// What only programs that have ended had there is for others now.
  void release(const plan::Placement& place, const Space& space) {
    state_.release(place.cls, place.name, space);
  }
  /// Within the blocks that there are.
  bool fits(const runtime::ProgramSpec& spec) const;

 private:
  struct Largest {
    std::size_t entry;
    graph::BatchCut cut;
    int at_once;
  };

  void add_update();
  void add_entry(std::string name);
  /// The name of an entry's first program, which its blocks go by.
  std::string program_of(std::size_t entry) const;
  compile::Compiled swept(const SweepProgram& program, const compile::Options& how,
                          plan::StateLayout& state) const;
  compile::Entry named(const Way& way, const graph::SizeValues& sizes) const;
  /// With the cut that all programs of an update have at these sizes.
  compile::Options how_at(const Way& way, const graph::SizeValues& sizes);

  graph::Graph graph_;
  std::string name_;
  compile::Options how_;
  GraphAt at_;
  graph::SizeValues bounds_;
  std::vector<std::string> entries_;
  std::vector<Way> ways_;
  plan::StateLayout state_;
  std::vector<Largest> largest_;
  std::map<graph::SizeValues, Largest> updates_;  ///< by sizes: that of their last batches
  std::vector<runtime::BlockRoom> room_;
};

}  // namespace arenite
