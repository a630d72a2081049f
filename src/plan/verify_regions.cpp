#include "src/plan/verify_regions.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "src/graph/nesting.hpp"

namespace arenite::plan {
namespace {

using graph::Control;
using graph::Graph;
using graph::Op;
using graph::OpId;
using graph::RegionId;
using graph::StorageId;
using graph::ValueId;

class RegionVerifier {
 public:
  RegionVerifier(const Graph& graph, OpId op, std::span<const Placement* const> place_of)
      : graph_(graph), op_(op), place_of_(place_of) {
    name(op);
    find_rivals();
  }

  void run(const std::vector<bool>& held, const std::vector<bool>& needed) {
    // A loop is run once in each round: loops in loops would take for ever otherwise.
    State state;
    do {
      settled_ = true;
      state.assign(roots_.size(), {});
      for (std::size_t i = 0; i < roots_.size(); ++i) {
        if (held[roots_[i].index]) state[i].content = Content::valid;
      }
      visit(op_, state);
    } while (!settled_);
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      if (needed[roots_[i].index]) require(state, i, "whoever needs it later");
    }
  }

 private:
  enum class Content : std::uint8_t { unborn, valid, clobbered };
  struct Cell {
    Content content = Content::unborn;
    std::size_t by = 0;  // what clobbered it

    friend bool operator==(const Cell& a, const Cell& b) { return a.content == b.content; }
  };
  using State = std::vector<Cell>;

  // ---- which storages the op names, and which of them share bytes ----

  void name(ValueId id) {
    if (!id) return;
    const StorageId root = graph_.root(id);
    const Placement* place = place_of_[root.index];
    if (place == nullptr || place->external || place->bytes == 0) return;
    if (index_.try_emplace(root, roots_.size()).second) roots_.push_back(root);
  }

  void name(OpId id) {
    const Op& op = graph_[id];
    for (ValueId operand : op.operands) name(operand);
    for (ValueId result : op.results) name(result);
    name(op.workspace);
    for (RegionId region : op.regions) {
      for (ValueId parameter : graph_[region].parameters) name(parameter);
      for (OpId inner : graph_[region].ops) name(inner);
      for (ValueId yielded : graph_[region].results) name(yielded);
    }
  }

  const Placement& place(std::size_t i) const { return *place_of_[roots_[i].index]; }

  void find_rivals() {
    rivals_.resize(roots_.size());
    std::vector<std::size_t> by_place(roots_.size());
    for (std::size_t i = 0; i < by_place.size(); ++i) by_place[i] = i;
    std::sort(by_place.begin(), by_place.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(place(a).block, place(a).offset, a) <
             std::tie(place(b).block, place(b).offset, b);
    });
    for (std::size_t a = 0; a < by_place.size(); ++a) {
      const Placement& first = place(by_place[a]);
      for (std::size_t b = a + 1; b < by_place.size(); ++b) {
        const Placement& next = place(by_place[b]);
        if (next.block != first.block || next.offset >= first.offset + first.bytes) break;
        rivals_[by_place[a]].push_back(by_place[b]);
        rivals_[by_place[b]].push_back(by_place[a]);
      }
    }
  }

  // ---- reads and writes ----

  std::string named(std::size_t i) const { return "'" + place(i).name + "'"; }

  void require(const State& state, std::size_t i, const std::string& reader) const {
    if (state[i].content != Content::clobbered) return;
    fail({.found = named(state[i].by) + " takes bytes of " + named(i) + " within " +
                   describe(graph_, op_),
          .expected = "bytes that " + reader + " finds as they were",
          .where = "step plan"});
  }

  void read(State& state, ValueId id, const std::string& reader) const {
    if (!id) return;
    if (const auto at = index_.find(graph_.root(id)); at != index_.end())
      require(state, at->second, reader);
  }

  void write(State& state, StorageId root, bool whole) const {
    const auto at = index_.find(root);
    if (at == index_.end()) return;
    Cell& cell = state[at->second];
    if (whole || cell.content == Content::unborn) cell.content = Content::valid;
    for (const std::size_t rival : rivals_[at->second]) {
      if (state[rival].content == Content::valid) state[rival] = {Content::clobbered, at->second};
    }
  }

  bool covers_storage(ValueId id) const {
    if (graph::fills_storage(graph_, id)) return true;
    if (!nesting_) nesting_.emplace(graph_);
    return nesting_->covers_storage(id);
  }

  /// All of a value. What else its storage holds does not come back by that.
  void write(State& state, ValueId id) const {
    const graph::Value& value = graph_[id];
    if (byte_size(value.type, value.shape, value.layout) > 0)
      write(state, graph_.root(id), covers_storage(id));
  }

  /// Views are no writes.
  bool writes(const std::vector<graph::Access>& touched, ValueId result) const {
    return std::any_of(touched.begin(), touched.end(), [&](const graph::Access& access) {
      return access.writes && access.storage == graph_.root(result) &&
             access.offset == graph_[result].offset;
    });
  }

  /// All at once: what would be overwritten is set aside first.
  void hand_over(State& state, const Op& op, const std::vector<graph::Handover>& all) const {
    const std::string reader = "a handover of " + describe(graph_, op_);
    for (const graph::Handover& handover : all) {
      if (!handover.staged) continue;
      read(state, handover.from, reader);
      write(state, op.workspace);
    }
    for (const graph::Handover& handover : all) {
      read(state, handover.staged ? op.workspace : handover.from, reader);
      write(state, handover.into);
    }
  }

  // ---- the walk ----

  void visit(OpId id, State& state) {
    const Op& op = graph_[id];
    const std::string reader = describe(graph_, id);
    if (op.regions.empty()) {
      const auto touched = graph::accesses(graph_, id);
      for (const graph::Access& access : touched) {
        const auto at = index_.find(access.storage);
        if (access.reads && at != index_.end()) require(state, at->second, reader);
      }
      for (const graph::Access& access : touched) {
        if (access.writes)
          write(state, access.storage, access.bytes == graph_.storage(access.storage).bytes);
      }
      for (ValueId result : op.results) {
        if (writes(touched, result)) write(state, result);
      }
      if (op.workspace) write(state, op.workspace);
      // Writing one of its own values may not have cost it another.
      for (const graph::Access& access : touched) {
        const auto at = index_.find(access.storage);
        if (at != index_.end()) require(state, at->second, reader);
      }
      return;
    }
    check_workspace(id);
    for (ValueId operand : op.operands) read(state, operand, reader);
    if (op.definition->control == Control::loop) {
      loop(op, state);
    } else {
      branch(op, state);
    }
  }

  void check_workspace(OpId id) const {
    const Op& op = graph_[id];
    const std::int64_t needed = staging_bytes(graph_, op);
    const std::int64_t there = op.workspace ? graph_.root_storage(op.workspace).bytes : 0;
    if (there >= needed) return;
    fail(
        {.found = describe(graph_, id) + " with a workspace of " + std::to_string(there) + " bytes",
         .expected = std::to_string(needed) + ", for values that change at once",
         .where = "step plan",
         .hint = "graph::in_place adds it"});
  }

  void region(const Op& op, std::size_t r, State& state) {
    const graph::Region& region = graph_[op.regions[r]];
    for (OpId inner : region.ops) visit(inner, state);
    for (ValueId yielded : region.results) {
      // The next condition. What nobody hands over nobody reads here.
      if (yielded && region.results.size() > op.results.size()) {
        read(state, yielded, "the next trip");
        break;
      }
    }
    hand_over(state, op, handovers_at_end(graph_, op, r));
  }

  void branch(const Op& op, State& state) {
    const State before = state;
    for (std::size_t r = 0; r < op.regions.size(); ++r) {
      State side = before;
      region(op, r, side);
      forget_left_out(op, graph_[op.regions[r]], side);
      state = r == 0 ? std::move(side) : meet(state, side);
    }
  }

  /// A result that a block leaves out does not exist on this way, whatever was there in an earlier
  /// trip of a loop around it; one that it yields may have the same bytes.
  void forget_left_out(const Op& op, const graph::Region& block, State& state) const {
    std::set<StorageId> yielded;
    for (std::size_t i = 0; i < op.results.size() && i < block.results.size(); ++i) {
      if (block.results[i]) yielded.insert(graph_.root(op.results[i]));
    }
    for (std::size_t i = 0; i < op.results.size() && i < block.results.size(); ++i) {
      const StorageId root = graph_.root(op.results[i]);
      const auto at = index_.find(root);
      if (!block.results[i] && !yielded.contains(root) && at != index_.end())
        state[at->second] = {};
    }
  }

  void loop(const Op& op, State& state) {
    hand_over(state, op, handovers_at_entry(graph_, op));
    const auto& parameters = graph_[op.regions[0]].parameters;
    write(state, parameters[0]);
    if (const auto known = begins_.find(op.regions[0]); known != begins_.end())
      state = meet(state, known->second);
    State after = state;
    write(after, parameters[0]);
    region(op, 0, after);
    state = meet(state, after);
    // Cells only get worse: it ends.
    State& begin = begins_[op.regions[0]];
    if (begin != state) {
      begin = state;
      settled_ = false;
    }
    hand_over(state, op, handovers_at_exit(graph_, op));
  }

  /// What may have come either way. Unborn on one way only: whoever reads it came the other way, as
  /// graph::verify has shown.
  static State meet(const State& a, const State& b) {
    State result = a;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (b[i].content > result[i].content) result[i] = b[i];
    }
    return result;
  }

  const Graph& graph_;
  mutable std::optional<graph::Nesting> nesting_;  // made when it is first asked
  const OpId op_;
  const std::span<const Placement* const> place_of_;
  std::vector<StorageId> roots_;
  std::map<StorageId, std::size_t> index_;
  std::vector<std::vector<std::size_t>> rivals_;
  std::map<RegionId, State> begins_;  // of loops: in front of a trip, as far as known
  bool settled_ = true;               // no begin has changed in this round
};

}  // namespace

void verify_regions(const Graph& graph, OpId op, std::span<const Placement* const> place_of,
                    const std::vector<bool>& held, const std::vector<bool>& needed) {
  RegionVerifier(graph, op, place_of).run(held, needed);
}

}  // namespace arenite::plan
