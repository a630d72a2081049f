#include <arenite/graph/operator.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>

#include "src/graph/flaw.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

class OrderVerifier {
 public:
  explicit OrderVerifier(const Graph& graph)
      : graph_(graph), values_(graph.value_count()), live_(graph.storage_count()) {}

  void run() {
    frames_.push_back({.region = Graph::body});
    for (const ValueId id : declared_values(graph_)) define(id);
    walk();
  }

 private:
  enum class State : std::uint8_t { undefined, visible, overwritten, out_of_scope };

  struct Known {
    State state = State::undefined;
    std::uint32_t depth = 0;  // of the frame that defined it
    OpId overwriter;
  };

  /// A region being walked.
  struct Frame {
    RegionId region;
    OpId holder;
    std::vector<ValueId> defined;
  };

  /// The innermost region. They nest at most max_region_depth deep: that was checked before.
  void walk() {
    for (const OpId id : graph_[frames_.back().region].ops) {
      before(id);
      for (const RegionId region : graph_[id].regions) {
        enter(region, id);
        walk();
      }
      after(id);
    }
    leave();
  }

  void enter(RegionId region, OpId holder) {
    frames_.push_back({.region = region, .holder = holder});
    const auto& parameters = graph_[region].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (is_loop(holder)) take_over(holder, parameters[i], i);
      define(parameters[i]);
    }
  }

  /// A loop's parameter takes bytes: those of its own first value, or nobody's.
  void take_over(OpId loop, ValueId parameter, std::size_t i) {
    const auto& operands = graph_[loop].operands;
    const auto [begin, end] = byte_range(graph_, parameter);
    for (const ValueId tenant : live_[graph_.root(parameter).index]) {
      Known& known = values_[tenant.index];
      const auto [from, to] = byte_range(graph_, tenant);
      if (known.state != State::visible || from >= end || to <= begin) continue;
      if (graph_[tenant].parameter_of == graph_[parameter].parameter_of) {
        op_flaw(graph_, loop,
                "parameters '" + graph_[tenant].name + "' and '" + graph_[parameter].name +
                    "' share bytes",
                "parameters with bytes of their own");
      }
      if (i == 0 || graph_.root(operands[i + 1]) != graph_.root(parameter) ||
          byte_range(graph_, operands[i + 1]).first != begin) {
        op_flaw(graph_, loop,
                "parameter '" + graph_[parameter].name + "' in the bytes of " +
                    describe_value(graph_, tenant),
                i == 0 ? "bytes of its own"
                       : "those of its first value '" + graph_[operands[i + 1]].name +
                             "', or bytes of its own");
      }
      if (known.depth + 1 < frames_.size()) {
        op_flaw(graph_, loop,
                "takes the bytes of " + describe_value(graph_, tenant) + " from outside its region",
                "captured values that stay as they are");
      }
      check_write(loop, parameter, "parameter");
      known.state = State::overwritten;
      known.overwriter = loop;
    }
  }

  bool is_loop(OpId op) const { return graph_[op].definition->control == Control::loop; }

  void leave() {
    const Frame& frame = frames_.back();
    const bool body = frame.region == Graph::body;
    const std::string reader =
        body ? "the end of the graph" : "the end of a region of " + describe(graph_, frame.holder);
    for (ValueId id : graph_[frame.region].results) {
      if (id) require_visible(id, frame.holder, reader);
    }
    if (body) {
      for (ValueId id : graph_.outputs) require_visible(id, {}, "the caller, as an output");
    }
    for (ValueId id : frame.defined) values_[id.index].state = State::out_of_scope;
    frames_.pop_back();
  }

  /// What happens when an op starts: operands are looked at.
  void before(OpId id) {
    const Op& op = graph_[id];
    for (const ValueId operand : op.operands) {
      if (!operand) continue;
      require_visible(operand, id, {});
      const Value& value = graph_[operand];
      if (value.producer && !may_read(op.phase, graph_[value.producer].phase)) {
        op_flaw(graph_, id,
                "reads " + describe_value(graph_, operand) + " of phase " +
                    std::string(to_string(graph_[value.producer].phase)),
                "values of phase " + std::string(to_string(op.phase)) + " or earlier");
      }
    }
  }

  void after(OpId id) {
    const Op& op = graph_[id];
    const auto views = result_views(graph_, op);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!views[i]) overwrite(id, op.results[i], i);
      define(op.results[i]);
    }
    if (op.workspace) {
      overwrite(id, op.workspace, no_result);
      values_[op.workspace.index].state = State::out_of_scope;
    }
  }

  void define(ValueId id) {
    values_[id.index] = {State::visible, static_cast<std::uint32_t>(frames_.size()), {}};
    live_[graph_.root(id).index].push_back(id);
    if (frames_.size() > 1) frames_.back().defined.push_back(id);
  }

  void require_visible(ValueId id, OpId reader, const std::string& reader_name) const {
    const Known& known = values_[id.index];
    if (known.state == State::visible) {
      if (is_partial(graph_, id)) require_side(id, reader, reader_name);
      return;
    }
    const std::string who = reader_name.empty() ? describe(graph_, reader) : reader_name;
    std::string found, expected;
    if (known.state == State::overwritten) {
      found = "reads " + describe_value(graph_, id) + " after " +
              describe(graph_, known.overwriter) + " took its bytes";
      expected = "no reader after an in-place result";
    } else if (known.state == State::undefined) {
      found = "reads " + describe_value(graph_, id) + " before it is defined";
      expected = "definitions before uses, in program order";
    } else {
      found = "reads " + describe_value(graph_, id) + " outside its scope";
      expected = "values of the same region or one around it";
    }
    throw Flaw({.found = found, .expected = expected, .where = who}, reader, id);
  }

  /// A partial result exists where its condition went the same way.
  void require_side(ValueId id, OpId reader, const std::string& reader_name) const {
    const Op& source = graph_[graph_[id].producer];
    const ValueId condition = source.operands[0];
    const std::size_t side = side_of(graph_, id);
    const std::string who = reader_name.empty() ? describe(graph_, reader) : reader_name;
    for (std::size_t f = 1; f < frames_.size(); ++f) {
      const Op& holder = graph_[frames_[f].holder];
      if (holder.definition->control == Control::branch && holder.operands[0] == condition &&
          holder.regions[side] == frames_[f].region)
        return;
    }
    throw Flaw({.found = "reads " + describe_value(graph_, id) + ", which " +
                         describe(graph_, graph_[id].producer) + " has only where its block '" +
                         source.definition->regions[side] + "' ran",
                .expected = "readers in such a block on the same condition",
                .where = who},
               reader, id);
  }

  /// An op that makes inputs out of constants and other inputs, a step ahead of their readers.
  bool refills_input(const Op& op, ValueId written, std::string_view role) const {
    const bool own_bytes = graph_.root(written) == graph_[written].storage;
    return role == "result" && own_bytes &&
           std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
             const StorageClass cls =
                 operand ? graph_.root_storage(operand).cls : StorageClass::constant;
             return cls == StorageClass::constant || cls == StorageClass::input;
           });
  }

  void check_write(OpId id, ValueId written, const char* role) {
    const Op& op = graph_[id];
    const StorageId root = graph_.root(written);
    const StorageClass cls = graph_.storage(root).cls;
    if (cls == StorageClass::input && refills_input(op, written, role)) return;
    if (cls == StorageClass::constant || cls == StorageClass::input) {
      op_flaw(graph_, id,
              std::string(role) + " writes " + describe_value(graph_, written) + ", of class " +
                  std::string(to_string(cls)),
              "constants and inputs that nothing writes");
    }
    if (cls != StorageClass::parameter && cls != StorageClass::optimizer_state) return;
    if (op.phase != Phase::update && op.phase != Phase::init) {
      op_flaw(graph_, id,
              std::string(role) + " of phase " + std::string(to_string(op.phase)) + " writes " +
                  describe_value(graph_, written) + ", of class " + std::string(to_string(cls)),
              "writers of phase update or init");
    }
  }

  /// A result (or workspace) takes bytes: whoever lived there is gone.
  void overwrite(OpId id, ValueId written, std::size_t result) {
    check_write(id, written, result == no_result ? "workspace" : "result");
    const auto [begin, end] = byte_range(graph_, written);
    std::vector<ValueId>& tenants = live_[graph_.root(written).index];
    std::size_t kept = 0;
    for (const ValueId tenant : tenants) {
      Known& known = values_[tenant.index];
      if (known.state != State::visible) continue;
      const auto [from, to] = byte_range(graph_, tenant);
      if (from >= end || to <= begin || (result != no_result && exclude(tenant, written))) {
        tenants[kept++] = tenant;
        continue;
      }
      check_tenant(id, written, result, tenant);
      known.state = State::overwritten;
      known.overwriter = id;
    }
    tenants.resize(kept);
  }

  /// Results of one `if`, each of which only the other one's block leaves out.
  bool exclude(ValueId a, ValueId b) const {
    return graph_[a].producer == graph_[b].producer && is_partial(graph_, a) &&
           is_partial(graph_, b) && side_of(graph_, a) != side_of(graph_, b);
  }

  void check_tenant(OpId id, ValueId written, std::size_t result, ValueId tenant) const {
    const Op& op = graph_[id];
    if (graph_[tenant].producer == id) {
      op_flaw(
          graph_, id,
          "results '" + graph_[tenant].name + "' and '" + graph_[written].name + "' share bytes",
          "results with bytes of their own");
    }
    for (std::size_t i = 0; i < op.operands.size() && op.regions.empty(); ++i) {
      if (op.operands[i] != tenant) continue;
      const auto allowed = pairs_in_place(graph_, op);
      const bool declared =
          std::find(allowed.begin(), allowed.end(), std::pair{result, i}) != allowed.end();
      if (!declared || byte_range(graph_, tenant).first != byte_range(graph_, written).first) {
        op_flaw(graph_, id,
                std::string(result == no_result ? "workspace '" : "result '") +
                    graph_[written].name + "' takes the bytes of operand '" + graph_[tenant].name +
                    "'",
                "an operator that allows this in place, and equal offsets");
      }
    }
    const std::uint32_t depth = values_[tenant.index].depth;
    if (depth >= frames_.size()) return;
    for (std::size_t f = depth; f < frames_.size(); ++f) {
      if (!is_loop(frames_[f].holder)) continue;
      op_flaw(graph_, id,
              "takes the bytes of " + describe_value(graph_, tenant) + " from outside " +
                  describe(graph_, frames_[f].holder),
              "values that its next trip finds as they are");
    }
    // The op that leads from the tenant's region inwards.
    const auto& handed_in = graph_[frames_[depth].holder].operands;
    if (std::find(handed_in.begin(), handed_in.end(), tenant) == handed_in.end()) {
      op_flaw(graph_, id,
              "takes the bytes of " + describe_value(graph_, tenant) + " from outside its region",
              "captured values that stay as they are");
    }
  }

  static constexpr std::size_t no_result = static_cast<std::size_t>(-1);

  const Graph& graph_;
  std::vector<Known> values_;
  std::vector<std::vector<ValueId>> live_;  // by root storage
  std::vector<Frame> frames_;
};

}  // namespace

void verify_order(const Graph& graph) { OrderVerifier(graph).run(); }

}  // namespace arenite::graph
