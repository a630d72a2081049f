#include "src/graph/passes/list_schedule.hpp"

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/operator.hpp>

#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace arenite::graph {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

void sort_unique(std::vector<std::size_t>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Views, and what only looks at values: nothing is gained by waiting with it.
bool comes_along(const Graph& graph, OpId id) {
  const auto has_bytes = [&](ValueId result) { return graph.root_storage(result).bytes > 0; };
  const Op& op = graph[id];
  return is_view_op(graph, id) ||
         (op.regions.empty() && !op.results.empty() && std::ranges::none_of(op.results, has_bytes));
}

class ListScheduler {
 public:
  ListScheduler(const OpSequence& sequence, Preference preference)
      : sequence_(sequence),
        preference_(preference),
        waiting_(sequence.size()),
        net_(sequence.size(), 0),
        done_(sequence.size(), false),
        touched_(sequence.bytes.size(), false),
        left_(sequence.bytes.size()),
        ready_(sequence.keys),
        owed_(sequence.keys, 0) {}

  std::vector<std::size_t> run() {
    for (std::size_t s = 0; s < left_.size(); ++s) {
      left_[s] = sequence_.users[s].size();
      if (left_[s] < 2) continue;  // comes and goes with one op
      for (std::size_t user : sequence_.users[s]) net_[user] += sequence_.bytes[s];
    }
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      waiting_[i] = sequence_.before[i].size();
      if (waiting_[i] == 0) ready_[sequence_.key[i]].insert(rank(i));
    }
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      ++owed_[sequence_.key[i]];
      owing_.insert(sequence_.key[i]);
      while (take_one(sequence_.key[i])) {
      }
    }
    return chose_ ? std::move(order_) : std::vector<std::size_t>();
  }

 private:
  using Rank = std::pair<std::int64_t, std::size_t>;

  Rank rank(std::size_t op) const {
    const bool free = preference_ == Preference::frees_more;
    return {free ? std::min<std::int64_t>(net_[op], 0) : net_[op], op};
  }

  /// Of a key that has places left; the given one first.
  bool take_one(std::size_t first) {
    const auto has_ready = [&](std::size_t key) { return !ready_[key].empty(); };
    auto key = std::find_if(owing_.lower_bound(first), owing_.end(), has_ready);
    if (key == owing_.end()) key = std::ranges::find_if(owing_, has_ready);
    if (key == owing_.end()) return false;
    auto& ready = ready_[*key];
    if (--owed_[*key] == 0) owing_.erase(key);
    chose_ = chose_ || ready.size() > 1;
    const std::size_t op = ready.begin()->second;
    ready.erase(ready.begin());
    take(op);
    return true;
  }

  void take(std::size_t op) {
    order_.push_back(op);
    done_[op] = true;
    for (std::size_t s : sequence_.storages[op]) {
      const auto& users = sequence_.users[s];
      --left_[s];
      if (!touched_[s]) {  // the others find its bytes there
        touched_[s] = true;
        for (std::size_t user : users) lower(user, sequence_.bytes[s]);
      }
      if (left_[s] == 1)
        lower(*std::ranges::find(users, false, [&](std::size_t u) { return bool(done_[u]); }),
              sequence_.bytes[s]);
    }
    for (std::size_t next : sequence_.after[op]) {
      if (--waiting_[next] == 0) ready_[sequence_.key[next]].insert(rank(next));
    }
  }

  void lower(std::size_t op, std::int64_t bytes) {
    if (done_[op]) return;
    auto& ready = ready_[sequence_.key[op]];
    const bool is_ready = waiting_[op] == 0;
    if (is_ready) ready.erase(rank(op));
    net_[op] -= bytes;
    if (is_ready) ready.insert(rank(op));
  }

  const OpSequence& sequence_;
  const Preference preference_;
  std::vector<std::size_t> waiting_;   // by op: whom it follows that are not done
  std::vector<std::int64_t> net_;      // by op: bytes that it would take, less those it would free
  std::vector<bool> done_, touched_;   // by op; by storage
  std::vector<std::size_t> left_;      // by storage: users not done
  std::vector<std::set<Rank>> ready_;  // by key
  std::vector<std::size_t> owed_;      // by key: places not taken
  std::set<std::size_t> owing_;        // keys that have some
  std::vector<std::size_t> order_;
  bool chose_ = false;
};

}  // namespace

OpSequence::OpSequence(const Graph& graph, RegionId region, const std::vector<std::size_t>& named,
                       const std::vector<std::size_t>& tasks)
    : region_(region) {
  const Dependencies demanded = dependencies(graph, region);
  std::vector<std::size_t> number(graph.op_count(), none), own(graph.storage_count(), 0);
  std::vector<std::vector<std::size_t>> roots_of;         // by op
  std::map<OpId, std::vector<std::size_t>> sources;       // of what comes along
  std::map<StorageId, std::vector<std::size_t>> readers;  // of parameters
  for (OpId id : demanded.ops) {
    std::vector<std::size_t> needs, roots;
    const auto follow = [&](OpId other) {
      if (number[other.index] != none) needs.push_back(number[other.index]);
      if (const auto along = sources.find(other); along != sources.end())
        needs.insert(needs.end(), along->second.begin(), along->second.end());
    };
    for_each_named(graph, id, [&](ValueId value) {
      ++own[graph.root(value).index];
      roots.push_back(graph.root(value).index);
      const OpId producer = graph[value].producer;
      if (!producer || producer == id) return;
      follow(producer);
    });
    for (OpId p : demanded.of(id)) follow(p);
    if (comes_along(graph, id)) {
      sources[id] = std::move(needs);
      continue;
    }
    // A parameter is read before it is updated, even where the update is of another part of it.
    for_each_root(graph, id, [&](StorageId root, bool writes) {
      if (graph.storage(root).cls != StorageClass::parameter) return;
      auto& before_update = readers[root];
      if (graph[id].phase != Phase::update) before_update.push_back(size());
      if (writes) needs.insert(needs.end(), before_update.begin(), before_update.end());
    });
    sort_unique(needs);
    sort_unique(roots);
    std::erase(needs, size());
    number[id.index] = ops.size();
    ops.push_back(id);
    before.push_back(std::move(needs));
    roots_of.push_back(std::move(roots));
  }
  after.resize(size());
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t p : before[i]) after[p].push_back(i);
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const StorageClass cls = graph.storage(StorageId(i)).cls;
    if (own[i] != named[i] || !is_transient(cls) || cls == StorageClass::output) own[i] = none;
  }
  for (ValueId output : graph.outputs) own[graph.root(output).index] = none;
  find_storages(graph, roots_of, own);
  find_keys(graph, tasks);
}

void OpSequence::find_storages(const Graph& graph,
                               const std::vector<std::vector<std::size_t>>& roots_of,
                               const std::vector<std::size_t>& own) {
  storages.resize(size());
  in_place.resize(size());
  std::vector<std::size_t> local(own.size(), none);
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t root : roots_of[i]) {
      if (own[root] == none) continue;
      if (local[root] == none) {
        local[root] = users.size();
        users.emplace_back();
        bytes.push_back(graph.storage(StorageId(root)).bytes);
      }
      storages[i].push_back(local[root]);
      users[local[root]].push_back(i);
    }
    const Op& op = graph[ops[i]];
    for (const auto& [result, operand] : pairs_in_place(graph, op)) {
      const std::size_t from = local[graph.root(op.results[result]).index],
                        into = local[graph.root(op.operands[operand]).index];
      if (from != none && into != none && bytes[from] == bytes[into])
        in_place[i].emplace_back(from, into);
    }
  }
}

/// A block runs on one worker. Else tasks or lanes run side by side, and where there are several
/// lanes, what is in none of them runs wherever there is time.
void OpSequence::find_keys(const Graph& graph, const std::vector<std::size_t>& tasks) {
  const bool several = std::ranges::any_of(ops, [&](OpId id) { return graph[id].lane > 0; });
  std::map<std::size_t, std::size_t> known_lanes;
  std::map<std::pair<std::size_t, bool>, std::size_t> known;
  for (OpId id : ops) {
    const Op& op = graph[id];
    const bool body = region_ == Graph::body;
    const bool late = body && (op.phase == Phase::backward || op.phase == Phase::update);
    const std::size_t lane_or_task = !tasks.empty()    ? tasks[id.index]
                                     : body && several ? static_cast<std::size_t>(op.lane + 1)
                                                       : 0;
    const std::size_t own = known_lanes.try_emplace(lane_or_task, known_lanes.size()).first->second;
    const auto [found, added] = known.try_emplace({own, late}, known.size());
    if (added) lane.push_back(own);
    key.push_back(found->second);
  }
  keys = known.size();
  lanes = known_lanes.size();
}

OpSequence OpSequence::reversed() const {
  OpSequence result(region_);
  const std::size_t last = size() - 1;
  const auto turned = [&](std::vector<std::vector<std::size_t>> lists) {
    for (auto& list : lists) {
      for (std::size_t& op : list) op = last - op;
      std::ranges::reverse(list);
    }
    return lists;
  };
  const auto backwards = [](auto list) {
    std::ranges::reverse(list);
    return list;
  };
  result.ops = backwards(ops);
  result.key = backwards(key);
  result.lane = lane;
  result.keys = keys;
  result.lanes = lanes;
  result.before = backwards(turned(after));
  result.after = backwards(turned(before));
  result.storages = backwards(storages);
  result.users = turned(users);
  result.bytes = bytes;
  result.in_place = backwards(in_place);
  return result;
}

std::vector<OpId> OpSequence::with_others(const Graph& graph,
                                          const std::vector<std::size_t>& order) const {
  std::vector<OpId> ordered;
  for (std::size_t i : order) ordered.push_back(ops[i]);
  return with_others_early(graph, region_, ordered);
}

std::vector<std::size_t> list_schedule(const OpSequence& sequence, Preference preference) {
  return ListScheduler(sequence, preference).run();
}

std::int64_t live_bytes(const OpSequence& sequence, const std::vector<std::size_t>& order) {
  const std::size_t all = sequence.lanes;  // what several lanes use
  std::vector<std::size_t> left, lane;     // by storage
  for (const auto& users : sequence.users) {
    left.push_back(users.size());
    const auto lane_of = [&](std::size_t op) { return sequence.lane[sequence.key[op]]; };
    const bool one = std::ranges::all_of(
        users, [&](std::size_t op) { return lane_of(op) == lane_of(users[0]); });
    lane.push_back(one ? lane_of(users[0]) : all);
  }
  std::vector<std::int64_t> now(all + 1, 0), most(all + 1, 0);
  std::vector<bool> there(left.size(), false), gone(left.size(), false);
  for (const std::size_t op : order) {
    for (const auto& [from, into] : sequence.in_place[op]) {
      if (there[from] || gone[into] || left[into] != 1) continue;
      there[from] = gone[into] = true;
      now[lane[into]] -= sequence.bytes[into];
      now[lane[from]] += sequence.bytes[from];
    }
    for (const std::size_t s : sequence.storages[op]) {
      if (!there[s]) now[lane[s]] += sequence.bytes[s];
      there[s] = true;
    }
    for (const std::size_t s : sequence.storages[op])
      most[lane[s]] = std::max(most[lane[s]], now[lane[s]]);
    for (const std::size_t s : sequence.storages[op]) {
      if (--left[s] == 0 && !gone[s]) now[lane[s]] -= sequence.bytes[s];
    }
  }
  return std::accumulate(most.begin(), most.end(), std::int64_t{0});
}

}  // namespace arenite::graph
