#include "src/expr/code.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/expr/functions.hpp"

namespace arenite::expr {
namespace {

/// Of an element; a boolean is a mask of 32 bits.
std::size_t bytes_in_tile(Type type) noexcept {
  return type == Type::boolean ? 4 : static_cast<std::size_t>(size_of(type));
}
/// Whether its loop reads one vector of each splat, and no more.
bool holds_splats(const Instruction& instruction) noexcept {
  const bool selects = instruction.function == Function::select;
  return instruction.from == Type::float32 && instruction.function != Function::cast &&
         (!selects || instruction.comparison != Function::constant);
}

class Lowering {
 public:
  Lowering(const Expression& expression, std::span<const Reach> reach,
           std::span<const std::vector<std::size_t>> overwrites, const Lowered& as)
      : expression_(expression),
        overwrites_(overwrites),
        groups_(as.groups),
        group_(as.group),
        varies_(expression.varying()),
        reduces_(expression.reduces()),
        reach_(expression.nodes().size(), Reach::run),
        readers_(reach_.size(), 0),
        absorbed_(reach_.size(), false),
        is_result_(reach_.size(), false),
        is_overwritten_(expression.operands().size(), false),
        homes_(reach_.size()) {
    find_reach(reach);
    find_stages();
    count_readers();
    absorb_comparisons();
    code_.operands = expression.operands().size();
    code_.results = expression.results().size();
  }

  Code run(bool keeps) {
    find_needed();
    if (keeps) {
      find_kept();
      find_needed();
      find_kept();  // not of what is kept itself
    }
    for (NodeId id = 0; id < reach_.size(); ++id) home_of_source(id);
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (is_computed(id) && !is_in_sweeps(id) && stage_[id] == 0) compute(id, nullptr);
    }
    for (sweep_ = 0; sweep_ < code_.sweeps.size(); ++sweep_) sweep();
    number_places();
    return std::move(code_);
  }

 private:
  enum class Kind : std::uint8_t { none, operand, splat, tile, kept, result };
  struct Home {
    Kind kind = Kind::none;
    std::size_t number = 0;
  };
  /// An instruction before its places have numbers.
  struct Draft {
    Instruction instruction;
    Home target;
    std::array<Home, 4> sources;
    std::vector<Instruction>* list = nullptr;
  };
  struct FoldDraft {
    Fold fold;
    Home source, target;
    std::size_t sweep;
  };

  const Node& node(NodeId id) const { return expression_[id]; }

  bool is_computed(NodeId id) const {
    const Function function = node(id).function;
    return !sources_of(node(id)).empty() && !is_reduction(function) && !absorbed_[id];
  }

  /// Made anew in each sweep that needs it, tile by tile or row by row.
  bool is_in_sweeps(NodeId id) const { return reach_[id] > Reach::group; }
  /// A result with one for each element, even where all are the same.
  bool is_of_elements(NodeId result) const { return !reduces_ || varies_[result]; }
  /// One value for all elements of a tile.
  bool is_splat(NodeId id) const {
    return reach_[id] != Reach::element &&
           !(groups_ == Groups::columns && reach_[id] == Reach::group);
  }

  void find_reach(std::span<const Reach> operands) {
    for (NodeId id = 0; id < reach_.size(); ++id) {
      const Node& one = node(id);
      if (one.function == Function::operand) reach_[id] = operands[one.payload];
      if (one.function == Function::index) reach_[id] = Reach::element;
      for (const NodeId source : sources_of(one)) reach_[id] = std::max(reach_[id], reach_[source]);
      if (is_reduction(one.function)) reach_[id] = Reach::group;
    }
  }

  /// The first sweep at which a node may be made: those that reduce end one.
  void find_stages() {
    stage_.assign(reach_.size(), 0);
    std::size_t sweeps = 1;
    for (NodeId id = 0; id < reach_.size(); ++id) {
      for (const NodeId source : sources_of(node(id)))
        stage_[id] = std::max(stage_[id], stage_[source]);
      if (is_reduction(node(id).function)) sweeps = std::max(sweeps, ++stage_[id]);
    }
    for (const NodeId result : expression_.results()) {
      if (is_of_elements(result)) sweeps = std::max(sweeps, stage_[result] + 1);
    }
    code_.sweeps.resize(sweeps);
  }

  /// By sweep, what is to be made in it: of what is folded at its end, and, in the last one, of
  /// results.
  void find_needed() {
    const auto before = std::exchange(needed_, {});
    const auto is_kept_before = [&](NodeId id, std::size_t sweep) {
      const auto end = before.begin() + static_cast<std::ptrdiff_t>(before.empty() ? 0 : sweep);
      return !is_kept_.empty() && is_kept_[id] &&
             std::any_of(before.begin(), end, [&](const auto& needed) { return needed[id]; });
    };
    needed_.assign(code_.sweeps.size(), std::vector<bool>(reach_.size(), false));
    for (std::size_t sweep = 0; sweep < needed_.size(); ++sweep) {
      std::vector<bool>& needed = needed_[sweep];
      for (const NodeId result : expression_.results()) {
        if (sweep + 1 == needed_.size() && is_in_sweeps(result)) needed[result] = true;
      }
      for (NodeId id = static_cast<NodeId>(reach_.size()); id-- > 0;) {
        const Node& one = node(id);
        const bool folds = is_reduction(one.function) && stage_[id] == sweep + 1;
        const bool makes = needed[id] && is_in_sweeps(id) && !is_kept_before(id, sweep);
        if (!folds && !makes) continue;
        for (const NodeId source : sources_of(one)) {
          if (is_in_sweeps(source)) needed[source] = true;
        }
      }
    }
  }

  void find_kept() {
    is_kept_.assign(reach_.size(), false);
    for (NodeId id = 0; id < reach_.size(); ++id) {
      const auto sweeps = std::ranges::count_if(needed_, [&](const auto& one) { return one[id]; });
      is_kept_[id] = sweeps > 1 && is_computed(id) && reach_[id] == Reach::element &&
                     !info(node(id).function).is_cheap();
    }
  }

  void count_readers() {
    for (const Node& one : expression_.nodes()) {
      for (const NodeId source : sources_of(one)) ++readers_[source];
    }
    for (const NodeId result : expression_.results()) {
      ++readers_[result];
      is_result_[result] = true;
    }
    for (const auto& operands : overwrites_) {
      for (const std::size_t operand : operands) is_overwritten_[operand] = true;
    }
  }

  /// A comparison that one select alone reads becomes part of it.
  void absorb_comparisons() {
    for (const Node& one : expression_.nodes()) {
      if (one.function != Function::select) continue;
      const NodeId condition = one.sources[0];
      const Node& compared = node(condition);
      absorbed_[condition] = absorbed_[condition] ||
                             (readers_[condition] == 1 && info(compared.function).is(predicate) &&
                              node(compared.sources[0]).type == one.type);
    }
  }

  /// What an instruction reads, with those of a comparison that it absorbed.
  std::vector<NodeId> sources(NodeId id) const {
    const Node& one = node(id);
    const auto direct = sources_of(one);
    std::vector<NodeId> all(direct.begin(), direct.end());
    if (one.function == Function::select && absorbed_[all[0]]) {
      const Node& compared = node(all[0]);
      all = {compared.sources[0], compared.sources[1], all[1], all[2]};
    }
    return all;
  }

  /// Of what the sweep makes, in the order in which it does.
  void find_last_reads() {
    last_read_.assign(reach_.size(), 0);
    last_operand_read_.assign(expression_.operands().size(), 0);
    const auto never = static_cast<NodeId>(reach_.size());
    const auto read = [&](NodeId source, NodeId by) {
      last_read_[source] = by;
      if (node(source).function == Function::operand) last_operand_read_[node(source).payload] = by;
    };
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (!is_made(id)) continue;
      for (const NodeId source : sources(id)) read(source, id);
    }
    // What is folded, and results that are operands, constants or others, are read behind all.
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (folds(id)) read(node(id).sources[0], never);
    }
    for (const NodeId result : expression_.results()) {
      if (node(result).function == Function::operand) read(result, never);
    }
  }

  bool is_last() const { return sweep_ + 1 == code_.sweeps.size(); }
  bool folds(NodeId id) const {
    return is_reduction(node(id).function) && stage_[id] == sweep_ + 1;
  }
  /// In this sweep.
  bool is_made(NodeId id) const {
    const bool is_there = homes_[id].kind == Kind::kept;
    return is_computed(id) && is_in_sweeps(id) && needed_[sweep_][id] && !is_there;
  }

  void sweep() {
    Sweep& made = code_.sweeps[sweep_];
    free_ = own_;
    find_last_reads();
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (is_made(id)) compute(id, reach_[id] == Reach::row ? &made.in_row : &made.in_tile);
    }
    // Before results are written: they may lie where an operand does that is folded.
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (folds(id)) fold(id);
    }
    if (is_last()) copy_results(true, made.in_tile);
    own_registers();
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (is_computed(id) && !is_in_sweeps(id) && stage_[id] == sweep_ + 1)
        compute(id, &made.behind);
    }
    if (is_last()) copy_results(false, made.behind);
  }

  /// Registers that sweeps share: what is one for a group has its own.
  void own_registers() {
    for (std::size_t i = 0; i < code_.registers; ++i) {
      if (std::ranges::find(lasting_, i) == lasting_.end() &&
          std::ranges::find(own_, i) == own_.end())
        own_.push_back(i);
    }
  }

  Home new_home_of_group(Type type) {
    if (groups_ == Groups::rows) return {Kind::splat, new_splat(type)};
    widen(type);
    lasting_.push_back(code_.registers++);
    return {Kind::tile, lasting_.back()};
  }

  void fold(NodeId id) {
    const NodeId source = node(id).sources[0];
    Home from = homes_[source];
    const bool may_change = from.kind == Kind::operand && is_overwritten_[from.number];
    if (is_splat(source) || may_change) {
      const Home tile{Kind::tile, take()};
      copy(source, tile, code_.sweeps[sweep_].in_tile);
      from = tile;
    }
    homes_[id] = new_home_of_group(node(id).type);
    folds_.push_back(
        {{.function = node(id).function, .type = node(source).type}, from, homes_[id], sweep_});
  }

  std::size_t new_splat(Type type) {
    widen(type);
    return code_.splats++;
  }

  void widen(Type type) {
    code_.element_bytes = std::max(code_.element_bytes, bytes_in_tile(type));
  }

  /// Of what no instruction makes.
  void home_of_source(NodeId id) {
    const Node& one = node(id);
    if (one.function == Function::operand) {
      widen(one.type);
      homes_[id] = {Kind::operand, one.payload};
    } else if (one.function == Function::constant || one.function == Function::count) {
      homes_[id] = {Kind::splat, new_splat(one.type)};
      constants_.push_back({homes_[id], id});
    } else if (one.function == Function::index) {
      widen(one.type);
      lasting_.push_back(code_.registers);
      homes_[id] = {Kind::tile, code_.registers++};
      indices_.push_back({homes_[id], id});
    }
  }

  /// The result that it may be written to at once: none of the operands there is read later.
  std::optional<std::size_t> direct_result(NodeId id) const {
    if (!is_result_[id] || !is_last()) return std::nullopt;
    for (std::size_t i = 0; i < expression_.results().size(); ++i) {
      if (expression_.results()[i] != id) continue;
      const bool is_free = std::ranges::all_of(
          overwrites_[i], [&](std::size_t operand) { return last_operand_read_[operand] <= id; });
      if (is_free) return i;
    }
    return std::nullopt;
  }

  /// In a list; nullptr: before all sweeps.
  void compute(NodeId id, std::vector<Instruction>* list) {
    const Node& one = node(id);
    const std::vector<NodeId> read = sources(id);
    Draft draft;
    draft.list = list ? list : reach_[id] == Reach::run ? &code_.in_run : &code_.in_group;
    Instruction& instruction = draft.instruction;
    instruction.function = one.function;
    instruction.to = one.type;
    if (one.function == Function::select && absorbed_[one.sources[0]])
      instruction.comparison = node(one.sources[0]).function;
    instruction.from = node(read[one.function == Function::select ? 1 : 0]).type;
    for (std::size_t i = 0; i < read.size(); ++i) {
      draft.sources[i] = homes_[read[i]];
      if (is_splat(read[i]))
        instruction.splats = static_cast<std::uint8_t>(instruction.splats | 1u << i);
    }
    widen(one.type);
    if (is_splat(id)) {
      homes_[id] = {Kind::splat, new_splat(one.type)};
    } else if (reach_[id] == Reach::group) {
      homes_[id] = new_home_of_group(one.type);
    } else if (!is_kept_.empty() && is_kept_[id]) {
      release(id, read, true);
      release(id, read, false);
      homes_[id] = {Kind::kept, code_.kept++};
    } else {
      release(id, read, true);
      if (const auto result = direct_result(id)) {
        homes_[id] = {Kind::result, *result};
      } else {
        homes_[id] = {Kind::tile, take()};
      }
      release(id, read, false);
    }
    draft.target = homes_[id];
    drafts_.push_back(draft);
  }

  /// Registers that nobody reads behind this instruction. It may write to those itself whose
  /// elements are as wide as what it makes.
  void release(NodeId id, const std::vector<NodeId>& read, bool fits_over) {
    for (std::size_t i = 0; i < read.size(); ++i) {
      const NodeId source = read[i];
      const bool again = std::find(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(i),
                                   source) != read.begin() + static_cast<std::ptrdiff_t>(i);
      if (homes_[source].kind != Kind::tile || !is_in_sweeps(source) ||
          node(source).function == Function::index)
        continue;
      if (fits_over != (bytes_in_tile(node(source).type) == bytes_in_tile(node(id).type))) continue;
      if (last_read_[source] == id && !is_result_[source] && !again)
        free_.push_back(homes_[source].number);
    }
  }

  std::size_t take() {
    if (free_.empty()) return code_.registers++;
    const std::size_t number = free_.back();
    free_.pop_back();
    return number;
  }

  void copy(NodeId id, Home target, std::vector<Instruction>& list) {
    Draft draft;
    draft.list = &list;
    draft.instruction = {.function = Function::operand, .from = node(id).type, .to = node(id).type};
    if (is_splat(id)) draft.instruction.splats = 1;
    draft.target = target;
    draft.sources[0] = homes_[id];
    drafts_.push_back(draft);
  }

  /// Of operands, constants, and what could not be written at once: those that sweeps make, or the
  /// others. An operand that another result may overwrite before is kept first.
  void copy_results(bool in_sweeps, std::vector<Instruction>& list) {
    const auto results = expression_.results();
    const auto belongs = [&](NodeId id) { return is_of_elements(id) == in_sweeps; };
    for (std::size_t i = 0; i < results.size(); ++i) {
      const NodeId id = results[i];
      const Home home = homes_[id];
      if (!belongs(id) || home.kind != Kind::operand || !is_overwritten_[home.number]) continue;
      const Home kept{Kind::tile, take()};
      copy(id, kept, list);
      homes_[id] = kept;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Home home = homes_[results[i]];
      if (belongs(results[i]) && (home.kind != Kind::result || home.number != i))
        copy(results[i], {Kind::result, i}, list);
    }
  }

  Place place_of(Home home) const {
    switch (home.kind) {
      case Kind::splat:
        return code_.splat(home.number);
      case Kind::tile:
        return code_.tile(home.number);
      case Kind::kept:
        return code_.kept_place(home.number);
      case Kind::result:
        return code_.result(home.number);
      default:
        return static_cast<Place>(home.number);
    }
  }

  void number_places() {
    for (const auto& [home, id] : constants_) {
      const bool counts = node(id).function == Function::count;
      code_.constants.push_back({place_of(home), node(id).type,
                                 counts ? static_cast<std::uint64_t>(group_) : node(id).payload});
    }
    for (const auto& [home, id] : indices_)
      code_.indices.push_back({place_of(home), static_cast<int>(node(id).payload)});
    for (Draft& draft : drafts_) {
      if (!holds_splats(draft.instruction)) code_.splat_elements = tile_elements;
      draft.instruction.target = place_of(draft.target);
      for (std::size_t i = 0; i < draft.sources.size(); ++i)
        draft.instruction.sources[i] = place_of(draft.sources[i]);
      draft.list->push_back(draft.instruction);
    }
    for (FoldDraft& draft : folds_) {
      draft.fold.source = place_of(draft.source);
      draft.fold.target = place_of(draft.target);
      code_.sweeps[draft.sweep].folds.push_back(draft.fold);
    }
  }

  const Expression& expression_;
  std::span<const std::vector<std::size_t>> overwrites_;
  Groups groups_;
  std::int64_t group_;
  std::vector<bool> varies_;
  bool reduces_;
  Code code_;
  std::vector<Reach> reach_;
  std::vector<std::size_t> stage_;
  std::vector<std::vector<bool>> needed_;  // by sweep
  std::vector<bool> is_kept_;
  std::size_t sweep_ = 0;
  std::vector<int> readers_;
  std::vector<bool> absorbed_, is_result_, is_overwritten_;  // the last one by operand
  std::vector<Home> homes_;
  std::vector<NodeId> last_read_;
  std::vector<NodeId> last_operand_read_;  // by operand
  // Registers: that are free, that sweeps use, and that last from one to the next.
  std::vector<std::size_t> free_, own_, lasting_;
  std::vector<Draft> drafts_;
  std::vector<FoldDraft> folds_;
  std::vector<std::pair<Home, NodeId>> constants_, indices_;
};

}  // namespace

int source_count(const Instruction& instruction) noexcept {
  if (instruction.function == Function::operand) return 1;
  return info(instruction.function).sources +
         (instruction.comparison == Function::constant ? 0 : 1);
}

Code lower(const Expression& expression, std::span<const Reach> reach,
           std::span<const std::vector<std::size_t>> overwrites, const Lowered& as) {
  return Lowering(expression, reach, overwrites, as).run(as.keeps);
}

}  // namespace arenite::expr
