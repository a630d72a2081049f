// Ops of formulas (`OperatorDefinition::formula`) that read one another become one op of the
// formula of both: what lay between them is not read again, nor written unless others read it.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include "src/graph/passes/formula_part.hpp"
#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace arenite::graph {
namespace {

/// Bytes of a group, and of those beside it, that are still near when they are swept again.
constexpr std::int64_t most_near = std::int64_t{256} << 10;
/// Elements of which dear parts are kept from one sweep to the next.
constexpr std::int64_t most_kept = std::int64_t{1} << 16;
/// Groups whose elements do not lie one behind the other are swept so many at once.
constexpr std::int64_t side_by_side = 256;
/// A byte may be kept longer for so many that are moved less.
constexpr std::int64_t little = 128;

class FormulaFuser {
 public:
  FormulaFuser(const Graph& graph, const OperatorTable& table, Remarks* remarks)
      : graph_(graph),
        readers_(graph),
        parts_(graph.op_count()),
        done_by_(graph.op_count()),
        is_renewed_(graph.storage_count()) {
    for (const auto& fused : fused_operators<FormulaOf>(table)) {
      Fused<FormulaOf>& known = by_[fused.form->reduces ? 1 : 0];
      if (known.by != nullptr) {
        fail({.found = "operators '" + known.by->name + "' and '" + fused.by->name +
                       "', which both stand for any formula",
              .expected = "one of them"});
      }
      known = fused;
    }
    if (by_[0].by == nullptr || by_[1].by == nullptr) return;
    find_last_reads();
    const std::vector<OpId> ops = nested_ops(graph);
    for (OpId id : ops) {
      for_each_renewed(graph[id], [&](std::size_t, std::size_t operand) {
        is_renewed_[graph.root(graph[id].operands[operand]).index] = true;
      });
    }
    for (OpId id : ops) {
      done_by_[id.index] = id;
      parts_[id.index] = FormulaPart::of(graph, id);
      if (parts_[id.index]) extend(id, remarks);
    }
    for (OpId id : ops) {
      if (remarks == nullptr || !is_fused(id)) continue;
      const FormulaPart& part = *parts_[id.index];
      remarks->done.push_back({describe(graph, part.ops()), by(part).by->name});
    }
    for (auto& [maker, remark] : left_) {
      if (!is_gone(maker)) remarks->left.push_back(std::move(remark));
    }
  }

  int count() const noexcept { return joined_; }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    if (is_gone(id)) return true;
    if (!is_fused(id)) return false;
    const Op& op = graph_[id];
    const FormulaPart& part = *parts_[id.index];
    builder.context = {.phase = op.phase, .lane = op.lane, .where = op.where};
    const auto made = builder.add(by(part).by->name, mapped(part.operands(), map),
                                  by(part).form->attributes(part.formula()));
    for (std::size_t i = 0; i < made.size(); ++i) {
      map[part.results()[i].index] = made[i];
      copy_placement(graph_, part.results()[i], builder.graph(), made[i]);
    }
    return true;
  }

 private:
  bool is_gone(OpId id) const { return done_by_[id.index] != id; }
  bool is_fused(OpId id) const { return parts_[id.index] && parts_[id.index]->ops().size() > 1; }
  const Fused<FormulaOf>& by(const FormulaPart& part) const { return by_[part.reduces() ? 1 : 0]; }

  /// Takes in what makes its operands, until there is none that it could.
  void extend(OpId id, Remarks* remarks) {
    std::vector<OpId> left;
    for (bool again = true; again;) {
      again = false;
      left.clear();
      const std::vector<ValueId> operands = parts_[id.index]->operands();
      for (ValueId operand : operands) {
        const OpId first = graph_[operand].producer;
        const OpId maker = first ? done_by_[first.index] : OpId{};
        if (!maker || maker == id || !parts_[maker.index] ||
            std::ranges::find(left, maker) != left.end())
          continue;
        left.push_back(maker);
        again |= !join(maker, id, nullptr);
      }
    }
    for (OpId maker : left) {
      if (remarks != nullptr && !is_gone(maker)) join(maker, id, remarks);
    }
  }

  /// What stands against it: else it is done.
  Obstacle join(OpId maker, OpId reader, Remarks* remarks) {
    FormulaPart &made = *parts_[maker.index], &reads = *parts_[reader.index];
    std::vector<ValueId> kept;
    Obstacle why = apart(made, reads, kept);
    std::optional<FormulaPart> both;
    if (!why) {
      both = FormulaPart::joined(graph_, made, reads, kept);
      if (!both) why = {"one op could not compute both"};
    }
    if (!why) why = costs(made, reads, *both);
    if (remarks != nullptr && why.worth_a_remark()) {
      left_.push_back(
          {maker, {describe(graph_, std::array{maker, reader}), in_words(graph_, why)}});
    }
    if (why) return why;
    for (OpId op : made.ops()) done_by_[op.index] = reader;
    parts_[maker.index].reset();
    parts_[reader.index] = std::move(both);
    for (const ValueId operand : parts_[reader.index]->operands()) {
      std::size_t& last = last_read_[graph_.root(operand).index];
      last = std::max(last, readers_.nesting().position_of(reader));
    }
    ++joined_;
    return {};
  }

  /// `kept` becomes what others see besides.
  Obstacle apart(const FormulaPart& made, const FormulaPart& reads,
                 std::vector<ValueId>& kept) const {
    const OpId maker = made.ops().back(), reader = reads.ops().back();
    const Op &first = graph_[maker], &last = graph_[reader];
    if (readers_.nesting().region_of(maker) != readers_.nesting().region_of(reader))
      return {.words = "%o stands in another block", .op = reader};
    if (first.phase != last.phase || first.lane != last.lane)
      return {.words = "%o is of another phase or lane", .op = reader};
    for (ValueId value : made.results()) {
      if (const Obstacle why = is_seen_before(value, made, reads)) return why;
      if (!as_made(graph_, value) || !fills_storage(graph_, value))
        return {.words = "%v is placed by hand", .value = value};
      if (!is_seen_elsewhere(value, made, reads)) continue;
      if (!has_place(value, made))
        return {.words = "others need %v, which lies in no operand's bytes", .value = value};
      kept.push_back(value);
    }
    if (const Obstacle why = fits(made, reads)) return why;
    if (std::ranges::none_of(made.operands(), [&](ValueId id) { return is_renewed(id); }))
      return {};
    for (OpId op : made.ops()) {
      if (const Obstacle why = readers_.moved(op, op, reader, reads.ops())) return why;
    }
    return {};
  }

  bool is_renewed(ValueId id) const { return is_renewed_[graph_.root(id).index]; }

  /// By others, before the reader makes it, or where one for a group is not kept.
  Obstacle is_seen_before(ValueId value, const FormulaPart& made, const FormulaPart& reads) const {
    const Nesting& nesting = readers_.nesting();
    const bool has_all = graph_[value].shape == reads.whole();
    if (const Obstacle why = readers_.taken(value); why && !has_all) return why;
    for (const auto& [other, in_block] : readers_.of(value)) {
      const bool is_before = nesting.position_of(other) < nesting.position_of(reads.ops().back());
      if ((is_before || !has_all) && !made.does(other) && !reads.does(other))
        return {.words = "%v is read by %o too", .value = value, .op = other};
    }
    return {};
  }

  bool is_seen_elsewhere(ValueId value, const FormulaPart& made, const FormulaPart& reads) const {
    return readers_.taken(value) ||
           std::ranges::any_of(readers_.of(value), [&](const Readers::Reader& reader) {
             return !made.does(reader.op) && !reads.does(reader.op);
           });
  }

  /// Whether it may lie where something is that it is made of.
  bool has_place(ValueId value, const FormulaPart& made) const {
    return std::ranges::any_of(made.operands(), [&](ValueId operand) {
      return graph_[operand].type == graph_[value].type &&
             graph_[operand].shape == graph_[value].shape;
    });
  }

  /// Whether they go through the same elements, in the same groups.
  Obstacle fits(const FormulaPart& made, const FormulaPart& reads) const {
    const Op& maker = graph_[made.ops().back()];
    if (made.whole() != reads.whole()) {
      return {.words = "%v is repeated, or of other groups", .value = maker.results[0]};
    }
    if (!made.reduces()) return {};
    if (reads.reduces() && made.reduced() != reads.reduced())
      return {.words = "%v is of other groups", .value = maker.results[0]};
    bool has_all = false;
    for (ValueId value : made.results()) {
      const Shape& shape = graph_[value].shape;
      has_all = has_all || shape == made.whole();
      if (shape != made.whole() && !made.is_one_a_group(shape))
        return {.words = "%v is not of the groups' shape", .value = value};
    }
    // What is small is no work to read again.
    const auto shares = [&](ValueId operand) {
      return graph_[operand].shape == made.whole() &&
             std::ranges::find(reads.operands(), operand) != reads.operands().end();
    };
    return has_all || std::ranges::any_of(made.operands(), shares) ? Obstacle{} : not_meant;
  }

  // ---- what it saves, and costs

  std::int64_t bytes(ValueId id) const { return byte_size(graph_[id].type, graph_[id].shape); }

  /// Bytes that its operands and results have, as often as they are read or written.
  std::int64_t traffic(const FormulaPart& part) const {
    std::int64_t read = 0, written = 0, of_groups = 0;
    for (ValueId operand : part.operands()) {
      read += bytes(operand);
      of_groups += std::min(bytes(operand), near(part) * size_of(graph_[operand].type));
    }
    for (ValueId result : part.results()) written += bytes(result);
    return written + read * (of_groups > most_near ? part.sweeps() : 1);
  }

  /// Elements that are swept before others are.
  std::int64_t near(const FormulaPart& part) const {
    std::int64_t count = part.reduces() && !part.reduced().back() ? side_by_side : 1;
    for (int axis = 0; axis < part.whole().rank(); ++axis)
      count *= part.reduced()[static_cast<std::size_t>(axis)] ? part.whole()[axis] : 1;
    return count;
  }

  void find_last_reads() {
    last_read_.assign(graph_.storage_count(), 0);
    for (std::size_t r = 0; r < graph_.region_count(); ++r) {
      const auto& ops = graph_[RegionId(r)].ops;
      for (OpId id : ops) {
        for_each_named(graph_, id, [&](ValueId value) {
          if (readers_.nesting().region_of(value) == RegionId(r))
            last_read_[graph_.root(value).index] = readers_.nesting().position_of(id);
        });
      }
      for (ValueId yielded : graph_[RegionId(r)].results) {
        if (yielded) last_read_[graph_.root(yielded).index] = graph_.op_count();
      }
    }
    for (ValueId output : graph_.outputs) last_read_[graph_.root(output).index] = graph_.op_count();
  }

  /// Whether its bytes are there at an op anyway.
  bool is_there(ValueId id, OpId at) const {
    const Nesting& nesting = readers_.nesting();
    return !is_transient(graph_.root_storage(id).cls) ||
           nesting.region_of(id) != nesting.region_of(at) ||
           last_read_[graph_.root(id).index] >= readers_.nesting().position_of(at);
  }

  Obstacle costs(const FormulaPart& made, const FormulaPart& reads, const FormulaPart& both) const {
    const std::int64_t fewer = traffic(made) + traffic(reads) - traffic(both);
    if (fewer < 0)
      return {.words = "%o would read more in several sweeps", .op = reads.ops().back()};
    if (made.is_dear() && both.sweeps() > 1 && near(both) > most_kept)
      return {.words = "%o would compute it in several sweeps", .op = reads.ops().back()};
    const OpId maker = made.ops().back(), reader = reads.ops().back();
    std::int64_t longer = 0, saved = 0;
    for (ValueId operand : both.operands())
      longer += is_there(operand, reader) ? 0 : bytes(operand);
    for (ValueId value : made.results()) saved += bytes(value);
    if (longer <= saved + fewer / little) return {};
    // Nobody else needs the bytes before.
    const auto& ops = graph_[readers_.nesting().region_of(maker)].ops;
    for (std::size_t at = readers_.nesting().position_of(maker) + 1;
         at < readers_.nesting().position_of(reader); ++at) {
      if (!both.does(ops[at]) && !is_gone(ops[at]))
        return {.words = "%n bytes would have to be kept longer", .number = longer - saved};
    }
    return {};
  }

  const Graph& graph_;
  const Readers readers_;
  std::array<Fused<FormulaOf>, 2> by_;  ///< of formulas that reduce nothing, and of those that do
  std::vector<std::optional<FormulaPart>> parts_;  ///< by op
  std::vector<OpId> done_by_;                      ///< by op: itself, or one behind it
  std::vector<bool> is_renewed_;                   ///< by root storage: there is a new version
  std::vector<std::size_t> last_read_;  ///< by root storage: where, among its region's ops
  std::vector<std::pair<OpId, Remarks::Remark>> left_;  ///< by the one that stays
  int joined_ = 0;
};

}  // namespace

int fuse_formulas(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "fuse_formulas");
  return rewrite(graph, table, FormulaFuser(graph, table, remarks));
}

}  // namespace arenite::graph
