#include <arenite/graph/entries.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "src/graph/flaw.hpp"
#include "src/graph/values.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {

std::string describe_value(const Graph& graph, ValueId id) {
  return "value '" + graph[id].name + "' (#" + std::to_string(id.index) + ")";
}

void op_flaw(const Graph& graph, OpId op, std::string found, std::string expected) {
  throw Flaw(
      {.found = std::move(found), .expected = std::move(expected), .where = describe(graph, op)},
      op, {});
}

void value_flaw(const Graph& graph, ValueId value, std::string found, std::string expected) {
  throw Flaw({.found = std::move(found),
              .expected = std::move(expected),
              .where = describe_value(graph, value)},
             {}, value);
}

void graph_flaw(std::string where, std::string found, std::string expected) {
  throw Flaw(
      {.found = std::move(found), .expected = std::move(expected), .where = std::move(where)}, {},
      {});
}

namespace {

std::string number(std::size_t n) { return std::to_string(n); }

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    check_ids();
    check_storages();
    check_regions();
    check_producers();
    check_values();
    Op scratch;
    for (std::size_t i = 0; i < graph_.op_count(); ++i) verify_op(graph_, OpId(i), scratch);
    check_owners();
    check_declared();
    verify_run_time_sizes(graph_);
    verify_order(graph_);
  }

 private:
  static std::string describe_storage(const Storage& storage, std::size_t index) {
    return "storage '" + storage.name + "' (#" + number(index) + ")";
  }
  static std::string describe_region(std::size_t index) { return "region #" + number(index); }

  void check_ids() const {
    const auto known_value = [&](ValueId id) { return id.index < graph_.value_count(); };
    for (std::size_t i = 0; i < graph_.storage_count(); ++i) {
      const Storage& storage = graph_.storage(StorageId(i));
      if (storage.merged_into && storage.merged_into.index >= graph_.storage_count()) {
        graph_flaw(describe_storage(storage, i),
                   "merged into storage #" + number(storage.merged_into.index),
                   "one of the graph's " + number(graph_.storage_count()) + " storages");
      }
    }
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const Value& value = graph_[ValueId(i)];
      if (value.storage.index >= graph_.storage_count()) {
        value_flaw(graph_, ValueId(i), "no storage",
                   "one of the graph's " + number(graph_.storage_count()) + " storages");
      }
      if (value.producer && value.producer.index >= graph_.op_count()) {
        value_flaw(graph_, ValueId(i), "produced by op #" + number(value.producer.index),
                   "one of the graph's " + number(graph_.op_count()) + " ops");
      }
    }
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_[OpId(i)];
      if (!op.definition)
        op_flaw(graph_, OpId(i), "an op without a definition", "an operator of a table");
      for (ValueId operand : op.operands) {
        if (operand && !known_value(operand)) unknown_value(OpId(i), "operand", operand);
      }
      for (ValueId result : op.results) {
        if (!known_value(result)) unknown_value(OpId(i), "result", result);
      }
      if (op.workspace && !known_value(op.workspace))
        unknown_value(OpId(i), "workspace", op.workspace);
      for (RegionId region : op.regions) {
        if (region.index >= graph_.region_count()) {
          op_flaw(graph_, OpId(i), "region #" + number(region.index),
                  "one of the graph's " + number(graph_.region_count()) + " regions");
        }
      }
    }
    for (std::size_t i = 0; i < graph_.region_count(); ++i) {
      const Region& region = graph_[RegionId(i)];
      const bool values =
          std::all_of(region.parameters.begin(), region.parameters.end(), known_value) &&
          std::all_of(region.results.begin(), region.results.end(),
                      [&](ValueId id) { return !id || known_value(id); });
      const bool ops = std::all_of(region.ops.begin(), region.ops.end(),
                                   [&](OpId id) { return id.index < graph_.op_count(); });
      if (!values || !ops) {
        graph_flaw(describe_region(i), values ? "an unknown op" : "an unknown parameter or result",
                   "ids of this graph");
      }
    }
    const auto check_list = [&](const std::string& what, const std::vector<ValueId>& list) {
      if (std::ranges::all_of(list, known_value)) return;
      graph_flaw(what, "an unknown value",
                 "one of the graph's " + number(graph_.value_count()) + " values");
    };
    check_list("outputs", graph_.outputs);
    for (const Entry& entry : graph_.entries) {
      check_list("entry '" + entry.name + "'", entry.outputs);
      check_list("entry '" + entry.name + "'", entry.keeps);
      check_entry_name(graph_, entry.name);
    }
  }

  [[noreturn]] void unknown_value(OpId op, const char* role, ValueId id) const {
    op_flaw(graph_, op, std::string(role) + " " + (id ? "#" + number(id.index) : "without a value"),
            "one of the graph's " + number(graph_.value_count()) + " values");
  }

  void check_storages() const {
    enum : char { unseen, on_path, done };
    std::vector<char> state(graph_.storage_count(), unseen);
    std::vector<std::size_t> path;
    for (std::size_t i = 0; i < graph_.storage_count(); ++i) {
      path.clear();
      std::size_t at = i;
      while (state[at] == unseen) {
        state[at] = on_path;
        path.push_back(at);
        const StorageId next = graph_.storage(StorageId(at)).merged_into;
        if (!next) break;
        at = next.index;
        if (state[at] == on_path) {
          graph_flaw(describe_storage(graph_.storage(StorageId(at)), at),
                     "merged into itself in a circle", "merges that end at a root");
        }
      }
      for (std::size_t seen : path) state[seen] = done;
    }
    for (std::size_t i = 0; i < graph_.storage_count(); ++i) {
      const Storage& storage = graph_.storage(StorageId(i));
      if (storage.bytes < 0) {
        graph_flaw(describe_storage(storage, i), std::to_string(storage.bytes) + " bytes",
                   "at least 0");
      }
      if (!storage.merged_into) continue;
      const Storage& target = graph_.storage(storage.merged_into);
      if (target.space != storage.space) {
        graph_flaw(describe_storage(storage, i),
                   "in " + to_string(storage.space) + ", merged into '" + target.name + "' in " +
                       to_string(target.space),
                   "one space");
      }
      if (target.bytes < storage.bytes) {
        graph_flaw(describe_storage(storage, i),
                   std::to_string(storage.bytes) + " bytes merged into the " +
                       std::to_string(target.bytes) + " of '" + target.name + "'",
                   "a target of at least the same size");
      }
    }
  }

  void check_regions() {
    std::vector<int> regions_of_op(graph_.op_count(), 0), holders(graph_.region_count(), 0);
    for (std::size_t i = 0; i < graph_.region_count(); ++i) {
      for (OpId op : graph_[RegionId(i)].ops) ++regions_of_op[op.index];
    }
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      if (regions_of_op[i] != 1) {
        op_flaw(graph_, OpId(i), "listed " + std::to_string(regions_of_op[i]) + " times in regions",
                "exactly once");
      }
      for (RegionId region : graph_[OpId(i)].regions) ++holders[region.index];
    }
    for (std::size_t i = 0; i < graph_.region_count(); ++i) {
      const int expected = i == Graph::body.index ? 0 : 1;
      if (holders[i] != expected) {
        graph_flaw(describe_region(i), "held by " + std::to_string(holders[i]) + " ops",
                   expected ? "exactly one" : "none: it is the graph's body");
      }
    }
    // With one holder each, a region that the body does not reach holds itself in a circle.
    std::vector<bool> reached(graph_.region_count(), false);
    std::vector<std::pair<RegionId, std::size_t>> pending{{Graph::body, 0}};
    while (!pending.empty()) {
      const auto [region, depth] = pending.back();
      pending.pop_back();
      reached[region.index] = true;
      if (depth > max_region_depth) {
        graph_flaw(describe_region(region.index), "in " + number(depth - 1) + " others",
                   "regions nested at most " + number(max_region_depth) + " deep");
      }
      for (OpId op : graph_[region].ops) {
        for (RegionId inner : graph_[op].regions) pending.emplace_back(inner, depth + 1);
      }
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (!reached[i])
        graph_flaw(describe_region(i), "not reached from the body", "regions nested in the body");
    }
    if (!graph_[Graph::body].results.empty()) {
      graph_flaw("the body", "results of a region", "outputs of the graph instead");
    }
    check_parameters();
  }

  void check_parameters() const {
    std::vector<bool> listed(graph_.value_count(), false);
    for (std::size_t i = 0; i < graph_.region_count(); ++i) {
      for (ValueId id : graph_[RegionId(i)].parameters) {
        if (i == Graph::body.index || listed[id.index] || graph_[id].producer ||
            graph_[id].parameter_of != RegionId(i)) {
          value_flaw(graph_, id, "a parameter of " + describe_region(i),
                     "parameters only of nested regions, of one region each that they name, "
                     "without a producer");
        }
        listed[id.index] = true;
      }
    }
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (graph_[ValueId(i)].parameter_of && !listed[i]) {
        value_flaw(
            graph_, ValueId(i),
            "said to be a parameter of " + describe_region(graph_[ValueId(i)].parameter_of.index),
            "to be among its parameters");
      }
    }
  }

  void check_producers() {
    std::vector<OpId> listed(graph_.value_count());
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_[OpId(i)];
      const auto claim = [&](ValueId id, const char* role) {
        const Value& value = graph_[id];
        if (listed[id.index]) {
          op_flaw(graph_, OpId(i),
                  std::string(role) + " '" + value.name + "', also of " +
                      describe(graph_, listed[id.index]),
                  "values with one producer");
        }
        if (value.producer != OpId(i)) {
          op_flaw(graph_, OpId(i),
                  std::string(role) + " '" + value.name + "', which says it is produced by " +
                      (value.producer ? describe(graph_, value.producer) : "nothing"),
                  "this op");
        }
        listed[id.index] = OpId(i);
      };
      for (ValueId result : op.results) claim(result, "result");
      if (!op.workspace) continue;
      claim(op.workspace, "workspace");
      const Value& scratch = graph_[op.workspace];
      if (graph_.storage(scratch.storage).cls != StorageClass::workspace ||
          scratch.type != DType::uint8 || scratch.shape.rank() != 1) {
        op_flaw(graph_, OpId(i),
                "a workspace of type " + type_text(scratch) + ", class " +
                    std::string(to_string(graph_.storage(scratch.storage).cls)),
                "uint8[bytes] of class workspace");
      }
    }
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const Value& value = graph_[ValueId(i)];
      if (value.producer && !listed[i]) {
        value_flaw(graph_, ValueId(i), "said to be produced by " + describe(graph_, value.producer),
                   "to be among its results");
      }
    }
  }

  /// All that runs over one batch has a row for each of its samples.
  void check_batch(ValueId id, ValueId first) const {
    const Value& value = graph_[id];
    if (value.parameter_of || value.shape.rank() == 0) {
      value_flaw(graph_, id,
                 "batch '" + value.batch +
                     "' of a value without a first axis to run "
                     "over it, or of a block's parameter",
                 "batches of declared values and of results, of rank 1 or more");
    }
    if (value.shape[0] == graph_[first].shape[0]) return;
    value_flaw(graph_, id, std::to_string(value.shape[0]) + " rows of batch '" + value.batch + "'",
               std::to_string(graph_[first].shape[0]) + ", as in " + describe_value(graph_, first));
  }

  void check_values() const {
    std::map<std::string_view, ValueId> batches;
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId id(i);
      const Value& value = graph_[id];
      if (!value.batch.empty()) check_batch(id, batches.emplace(value.batch, id).first->second);
      if (value.layout.halo < 0 || (value.layout.halo > 0 && value.shape.rank() != 4)) {
        value_flaw(graph_, id,
                   "a halo of " + std::to_string(value.layout.halo) + " on shape " +
                       to_string(value.shape),
                   "none, or at least 1 on rank 4");
      }
      std::int64_t bytes = 0;
      try {
        bytes = byte_size(value.type, value.shape, value.layout);
      } catch (const Error& error) {
        value_flaw(graph_, id, error.text().found, error.text().expected);
      }
      const Storage& storage = graph_.storage(value.storage);
      if (value.offset < 0 || bytes > storage.bytes || value.offset > storage.bytes - bytes) {
        value_flaw(graph_, id,
                   std::to_string(bytes) + " bytes at offset " + std::to_string(value.offset) +
                       " of storage '" + storage.name + "' of " + std::to_string(storage.bytes) +
                       " bytes",
                   "values inside their storage");
      }
    }
  }

  /// One value that is no view for each storage.
  void check_owners() const {
    std::vector<ValueId> owner(graph_.storage_count());
    const auto claim = [&](ValueId id) {
      ValueId& known = owner[graph_[id].storage.index];
      if (known) {
        value_flaw(graph_, id, "in the storage of " + describe_value(graph_, known),
                   "a storage of its own, for it is no view");
      }
      known = id;
    };
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      if (!graph_[ValueId(i)].producer) claim(ValueId(i));
    }
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      const Op& op = graph_[OpId(i)];
      const auto views = result_views(graph_, op);
      for (std::size_t r = 0; r < op.results.size(); ++r) {
        if (!views[r]) claim(op.results[r]);
      }
      if (op.workspace) claim(op.workspace);
    }
  }

  void check_beginning(ValueId id, StorageClass cls) const {
    const Value& value = graph_[id];
    if (value.frozen && cls != StorageClass::parameter)
      value_flaw(graph_, id, "frozen", "parameters alone to be, for nothing else is trained");
    if (!value.first.is_zero() && !is_persistent(cls))
      value_flaw(graph_, id, "a first value", "one of what persists");
    try {
      check(value.first, value.type);
    } catch (const Error& error) {
      value_flaw(graph_, id, error.text().found, error.text().expected);
    }
  }

  void check_declared() const {
    std::map<std::pair<StorageClass, std::string_view>, ValueId> names;
    std::unordered_map<StorageId, ValueId> roots;
    for (const ValueId id : declared_values(graph_)) {
      const Value& value = graph_[id];
      if (value.name.empty() || value.name.find_first_of(",);") != std::string::npos) {
        value_flaw(graph_, id, "a declared value of this name", "a name without ',', ')' or ';'");
      }
      const StorageClass cls = graph_.storage(value.storage).cls;
      check_beginning(id, cls);
      if (const auto [known, fresh] =
              names.emplace(std::pair(cls, std::string_view(value.name)), id);
          !fresh) {
        value_flaw(graph_, id,
                   "a second " + std::string(to_string(cls)) + " of this name, after #" +
                       number(known->second.index),
                   "a name of its own for each of them");
      }
      if (const auto [known, fresh] = roots.emplace(graph_.root(id), id); !fresh) {
        value_flaw(graph_, id, "declared in the bytes of " + describe_value(graph_, known->second),
                   "bytes of their own for declared values");
      }
    }
  }

  const Graph& graph_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace arenite::graph
