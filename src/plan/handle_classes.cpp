#include <arenite/error.hpp>
#include <arenite/plan/handle_classes.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace arenite::plan {
namespace {

struct Segment {
  HandleClass bytes;
  std::map<std::size_t, bool> tasks;  // task → writes
  bool merged = false;                // into one before it

  void absorb(const Segment& next) {
    bytes.end = next.bytes.end;
    for (const auto& [task, writes] : next.tasks) {
      bool& mine = tasks[task];
      mine = mine || writes;
    }
  }
};

class Partitioner {
 public:
  explicit Partitioner(const HandleProblem& problem) : problem_(problem) {}

  std::vector<HandleClass> run() {
    cut();
    merge_equal();
    index();
    // Merging leaves no task with more segments than before: once over the tasks will do.
    for (std::size_t task = 0; task < problem_.task_count; ++task) {
      if (pieces_[task].size() > problem_.limit) merge_for(task);
    }
    std::vector<HandleClass> classes;
    for (Segment& segment : segments_) {
      if (!segment.merged) classes.push_back(segment.bytes);
    }
    return classes;
  }

 private:
  /// One segment for each stretch between two ends of accesses.
  void cut() {
    std::vector<std::set<std::int64_t>> cuts(problem_.block_bytes.size());
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      if (problem_.block_bytes[b] > 0) cuts[b] = {0, problem_.block_bytes[b]};
    }
    for (const HandleAccess& access : problem_.accesses) {
      if (access.begin < 0 || access.end > problem_.block_bytes.at(access.block) ||
          access.task >= problem_.task_count) {
        fail({.found = "an access of bytes " + std::to_string(access.begin) + "–" +
                       std::to_string(access.end) + " by task " + std::to_string(access.task),
              .expected = "bytes inside the block and a known task"});
      }
      if (access.begin < access.end) cuts[access.block].insert({access.begin, access.end});
    }
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      for (auto at = cuts[b].begin(); at != cuts[b].end() && std::next(at) != cuts[b].end(); ++at) {
        segments_.push_back({.bytes = {.block = b, .begin = *at, .end = *std::next(at)}});
      }
    }
    for (const HandleAccess& access : problem_.accesses) {
      auto at = std::lower_bound(
          segments_.begin(), segments_.end(), access, [](const Segment& s, const HandleAccess& a) {
            return std::pair(s.bytes.block, s.bytes.begin) < std::pair(a.block, a.begin);
          });
      for (;
           at != segments_.end() && at->bytes.block == access.block && at->bytes.begin < access.end;
           ++at) {
        bool& writes = at->tasks[access.task];
        writes = writes || access.writes;
      }
    }
  }

  /// Joins neighbours that the same tasks access in the same way, and gaps with what precedes them.
  void merge_equal() {
    std::vector<Segment> merged;
    for (Segment& segment : segments_) {
      const bool joins = !merged.empty() && merged.back().bytes.block == segment.bytes.block &&
                         (segment.tasks.empty() || merged.back().tasks.empty() ||
                          merged.back().tasks == segment.tasks);
      if (joins) {
        merged.back().absorb(segment);
      } else {
        merged.push_back(std::move(segment));
      }
    }
    segments_ = std::move(merged);
  }

  /// The task is ordered with all others of the segment that it has a conflict with.
  bool fits(const Segment& segment, std::size_t task, bool writes) const {
    return std::all_of(segment.tasks.begin(), segment.tasks.end(), [&](const auto& other) {
      return other.first == task || !(writes || other.second) ||
             problem_.ordered(std::min(task, other.first), std::max(task, other.first));
    });
  }

  /// Whether `segment`, which has just absorbed `next`, is ordered. `before` are the tasks it had:
  /// pairs of which neither is new need no second look.
  bool stays_ordered(const Segment& segment, const Segment& next,
                     const std::map<std::size_t, bool>& before) const {
    return segment.bytes.ordered && next.bytes.ordered &&
           std::all_of(next.tasks.begin(), next.tasks.end(), [&](const auto& task) {
             const auto known = before.find(task.first);
             return (known != before.end() && known->second >= task.second) ||
                    fits(segment, task.first, task.second);
           });
  }

  void join(Segment& segment, const Segment& next) const {
    if (segment.bytes.ordered) {
      // Whoever is new to the segment, or writes what it only read, may be out of order.
      Segment joined = segment;
      joined.absorb(next);
      joined.bytes.ordered = stays_ordered(joined, next, segment.tasks);
      segment = std::move(joined);
    } else {
      segment.absorb(next);
    }
  }

  void index() {
    pieces_.resize(problem_.task_count);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = segments_[i];
      for (const auto& [task, writes] : segment.tasks) pieces_[task].insert(i);
      segment.bytes.ordered = std::all_of(
          segment.tasks.begin(), segment.tasks.end(),
          [&](const auto& task) { return !task.second || fits(segment, task.first, true); });
    }
  }

  /// A run of segments between two neighbouring pieces of the crowded task, as one.
  struct Choice {
    bool unordered = true;
    std::size_t dragged = 0, from = 0, to = 0;
    auto operator<=>(const Choice&) const = default;
  };

  Choice choice(std::size_t from, std::size_t to) const {
    Segment joined = segments_[from];
    std::size_t incidences = joined.tasks.size();
    for (std::size_t j = from + 1; j <= to; ++j) {
      if (segments_[j].merged) continue;
      join(joined, segments_[j]);
      incidences = std::max(incidences, segments_[j].tasks.size());
    }
    return {!joined.bytes.ordered, joined.tasks.size() - incidences, from, to};
  }

  void merge(std::size_t from, std::size_t to) {
    for (std::size_t j = from + 1; j <= to; ++j) {
      if (segments_[j].merged) continue;
      for (const auto& [task, writes] : segments_[j].tasks) {
        pieces_[task].erase(j);
        pieces_[task].insert(from);
      }
      join(segments_[from], segments_[j]);
      segments_[j].merged = true;
      segments_[j].tasks.clear();
    }
  }

  /// Merges runs of segments until the task is within the limit: each time the run that drags the
  /// fewest other tasks along, and keeps the class ordered if any does.
  void merge_for(std::size_t task) {
    const std::set<std::size_t>& pieces = pieces_[task];
    std::set<Choice> choices;
    std::map<std::size_t, Choice> starting;  // by `from`: what `choices` holds
    const auto forget = [&](std::size_t from) {
      if (const auto old = starting.find(from); old != starting.end()) {
        choices.erase(old->second);
        starting.erase(old);
      }
    };
    const auto consider = [&](std::set<std::size_t>::const_iterator from) {
      forget(*from);
      const auto to = std::next(from);
      if (to == pieces.end() || segments_[*from].bytes.block != segments_[*to].bytes.block) return;
      const Choice made = choice(*from, *to);
      choices.insert(made);
      starting.emplace(*from, made);
    };
    for (auto at = pieces.begin(); at != pieces.end(); ++at) consider(at);

    while (pieces.size() > problem_.limit) {
      if (choices.empty()) {
        fail({.found = "task " + std::to_string(task) + " touches " +
                       std::to_string(pieces.size()) + " blocks",
              .expected = "at most " + std::to_string(problem_.limit)});
      }
      const Choice best = *choices.begin();
      forget(best.to);
      merge(best.from, best.to);
      // Only the runs that end or begin with the merged segment have changed.
      const auto at = pieces.find(best.from);
      if (at != pieces.begin()) consider(std::prev(at));
      consider(at);
    }
  }

  const HandleProblem& problem_;
  std::vector<Segment> segments_;
  std::vector<std::set<std::size_t>> pieces_;  // by task: the segments it touches
};

}  // namespace

std::vector<HandleClass> handle_classes(const HandleProblem& problem) {
  return Partitioner(problem).run();
}

}  // namespace arenite::plan
