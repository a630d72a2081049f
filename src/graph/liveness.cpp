#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/liveness.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "src/graph/nesting.hpp"

namespace arenite::graph {
namespace {

class Flow {
 public:
  explicit Flow(const Graph& graph) : graph_(graph) {}

  OpLiveness run(OpId id, const std::vector<bool>& needed) {
    for (const Access& access : accesses(graph_, id)) {
      if (index_.try_emplace(access.storage, roots_.size()).second)
        roots_.push_back(access.storage);
    }
    live_.resize(roots_.size());
    // A loop is walked once in each round, lest loops in loops in loops take for ever; a round more
    // than they are deep settles them all.
    do {
      settled_ = true;
      step_ = 0;
      Set live(roots_.size());
      for (std::size_t i = 0; i < roots_.size(); ++i) live[i] = needed[roots_[i].index];
      visit(id, live);
    } while (!settled_);

    OpLiveness result{.steps = step_, .spans = {}};
    for (std::size_t i = 0; i < roots_.size(); ++i) add_spans(i, result.spans);
    return result;
  }

 private:
  using Set = std::vector<bool>;

  // Steps are counted from the end while the walk goes backward.

  void visit(OpId id, Set& live) {
    const Op& op = graph_[id];
    if (op.regions.empty()) return visit_plain(id, live);
    if (op.definition->control == Control::loop) {
      visit_loop(op, live);
    } else {
      visit_branch(op, live);
    }
  }

  void visit_plain(OpId id, Set& live) {
    const Op& op = graph_[id];
    const auto touched = accesses(graph_, id);
    Step step(*this, live);
    for (const Access& access : touched) {
      const std::size_t at = index_.at(access.storage);
      step.touch(at);
      if (access.reads) step.read(at);
    }
    for (ValueId result : op.results) {
      if (graph_[result].producer == id && writes(touched, result)) step.write(result);
    }
    step.write(op.workspace);
  }

  void visit_branch(const Op& op, Set& live) {
    Step(*this, live).touch(op.results);
    const Set after = live;
    Set before(roots_.size());
    for (std::size_t r = op.regions.size(); r-- > 0;) {
      Set side = after;
      const Region& region = graph_[op.regions[r]];
      if (op.definition->control != Control::none) erase_left_out(op, region, side);
      hand_over(op, handovers_at_end(graph_, op, r), region, {}, side);
      visit(region.ops, side);
      for (std::size_t i = 0; i < side.size(); ++i) before[i] = before[i] || side[i];
    }
    live = std::move(before);
    Step step(*this, live);
    for (ValueId operand : op.operands) step.read(operand);
  }

  void visit_loop(const Op& op, Set& live) {
    const Region& body = graph_[op.regions[0]];
    {
      Step step(*this, live);
      for (const Handover& h : handovers_at_exit(graph_, op)) {
        step.write(h.into);
        step.read(h.from);
      }
    }
    const Set after = live;
    Set trip = after;
    if (const auto known = begins_.find(op.regions[0]); known != begins_.end()) {
      for (std::size_t i = 0; i < trip.size(); ++i) trip[i] = trip[i] || known->second[i];
    }
    hand_over(op, handovers_at_end(graph_, op, 0), body, body.parameters[0], trip);
    visit(body.ops, trip);
    Set& begin = begins_[op.regions[0]];
    if (trip != begin) {
      begin = std::move(trip);
      settled_ = false;
    }
    // There may be no trip at all.
    for (std::size_t i = 0; i < live.size(); ++i) live[i] = after[i] || begin[i];
    Step step(*this, live);
    step.write(body.parameters[0]);
    for (const Handover& h : handovers_at_entry(graph_, op)) {
      step.write(h.into);
      step.read(h.from);
    }
    for (ValueId operand : op.operands) step.read(operand);
  }

  void visit(const std::vector<OpId>& ops, Set& live) {
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) visit(*op, live);
  }

  /// `counter`: the parameter that gets the number of the next trip.
  void hand_over(const Op& op, const std::vector<Handover>& all, const Region& region,
                 ValueId counter, Set& live) {
    Step step(*this, live);
    step.write(counter);
    for (const Handover& h : all) {
      step.write(h.into);
      if (h.staged) step.write(op.workspace);
      step.read(h.from);
    }
    // The next condition, and what needs no handover.
    for (std::size_t i = 0; i < region.results.size(); ++i) {
      const bool condition = i + op.results.size() < region.results.size();
      if (condition) step.read(region.results[i]);
    }
  }

  /// One step's part in the flow: live(in) = live(out) - written + read, and it is marked with all
  /// of these when it ends.
  class Step {
   public:
    Step(Flow& flow, Set& live) : flow_(flow), live_(live), marked_(live), read_(live.size()) {}
    ~Step() {
      for (std::size_t i = 0; i < live_.size(); ++i) {
        live_[i] = live_[i] || read_[i];
        if (live_[i] || marked_[i]) flow_.mark(i);
      }
      ++flow_.step_;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    void touch(std::size_t i) { marked_[i] = true; }
    void read(std::size_t i) { read_[i] = true; }
    void touch(const std::vector<ValueId>& values) {
      for (ValueId id : values) flow_.with(id, [&](std::size_t i) { touch(i); });
    }
    void read(ValueId id) {
      flow_.with(id, [&](std::size_t i) { read(i); });
    }
    /// All of the value: what lay there before is dead, unless there is more of it.
    void write(ValueId id) {
      flow_.with(id, [&](std::size_t i) {
        touch(i);
        if (flow_.covers_storage(id)) live_[i] = false;
      });
    }

   private:
    Flow& flow_;
    Set& live_;
    Set marked_, read_;
  };

  bool covers_storage(ValueId id) {
    if (fills_storage(graph_, id)) return true;
    if (!nesting_) nesting_.emplace(graph_);
    return nesting_->covers_storage(id);
  }

  template <class F>
  void with(ValueId id, F f) const {
    if (!id) return;
    if (const auto at = index_.find(graph_.root(id)); at != index_.end()) f(at->second);
  }

  /// A result that a block leaves out does not exist on this way; one that the block yields may
  /// have its bytes.
  void erase_left_out(const Op& op, const Region& block, Set& live) const {
    const Set after = live;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!block.results[i]) with(op.results[i], [&](std::size_t at) { live[at] = false; });
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (block.results[i]) with(op.results[i], [&](std::size_t at) { live[at] = after[at]; });
    }
  }

  /// Views are no writes.
  bool writes(const std::vector<Access>& touched, ValueId result) const {
    return std::any_of(touched.begin(), touched.end(), [&](const Access& access) {
      return access.writes && access.storage == graph_.root(result) &&
             access.offset == graph_[result].offset;
    });
  }

  void mark(std::size_t i) {
    if (live_[i].size() <= step_) live_[i].resize(step_ + 1);
    live_[i][step_] = true;
  }

  void add_spans(std::size_t i, std::vector<LiveSpan>& spans) {
    Set& steps = live_[i];
    steps.resize(step_);
    std::reverse(steps.begin(), steps.end());
    for (std::size_t first = 0; first < step_; ++first) {
      if (!steps[first]) continue;
      std::size_t last = first;
      while (last + 1 < step_ && steps[last + 1]) ++last;
      spans.push_back({roots_[i], first, last});
      first = last;
    }
  }

  const Graph& graph_;
  std::optional<Nesting> nesting_;  // made when it is first asked
  std::vector<StorageId> roots_;
  std::unordered_map<StorageId, std::size_t> index_;
  std::vector<Set> live_;                     // by root: at which steps
  std::unordered_map<RegionId, Set> begins_;  // of loops: live when a trip begins, as far as known
  bool settled_ = true;                       // no begin has changed in this round
  std::size_t step_ = 0;
};

}  // namespace

OpLiveness liveness(const Graph& graph, OpId op, const std::vector<bool>& needed) {
  return Flow(graph).run(op, needed);
}

}  // namespace arenite::graph
