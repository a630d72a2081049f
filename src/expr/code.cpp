#include "src/expr/code.hpp"

#include <algorithm>
#include <optional>

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
           std::span<const std::vector<std::size_t>> overwrites)
      : expression_(expression),
        overwrites_(overwrites),
        reach_(expression.nodes().size(), Reach::run),
        readers_(reach_.size(), 0),
        absorbed_(reach_.size(), false),
        is_result_(reach_.size(), false),
        is_overwritten_(expression.operands().size(), false),
        homes_(reach_.size()) {
    find_reach(reach);
    count_readers();
    absorb_comparisons();
    code_.operands = expression.operands().size();
    code_.results = expression.results().size();
  }

  Code run() {
    find_last_reads();
    for (NodeId id = 0; id < reach_.size(); ++id) home_of_source(id);
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (is_computed(id)) compute(id);
    }
    copy_results();
    number_places();
    return std::move(code_);
  }

 private:
  enum class Kind : std::uint8_t { none, operand, splat, tile, result };
  struct Home {
    Kind kind = Kind::none;
    std::size_t number = 0;
  };
  /// An instruction before its places have numbers.
  struct Draft {
    Instruction instruction;
    Home target;
    std::array<Home, 4> sources;
    Reach reach = Reach::element;
  };

  const Node& node(NodeId id) const { return expression_[id]; }

  bool is_computed(NodeId id) const {
    const Function function = node(id).function;
    return function != Function::operand && function != Function::constant &&
           function != Function::index && !absorbed_[id];
  }

  void find_reach(std::span<const Reach> operands) {
    for (NodeId id = 0; id < reach_.size(); ++id) {
      const Node& one = node(id);
      if (one.function == Function::operand) reach_[id] = operands[one.payload];
      if (one.function == Function::index) reach_[id] = Reach::element;
      for (const NodeId source : sources_of(one)) reach_[id] = std::max(reach_[id], reach_[source]);
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

  void find_last_reads() {
    last_read_.assign(reach_.size(), 0);
    last_operand_read_.assign(expression_.operands().size(), 0);
    for (NodeId id = 0; id < reach_.size(); ++id) {
      if (!is_computed(id)) continue;
      for (const NodeId source : sources(id)) {
        last_read_[source] = id;
        if (node(source).function == Function::operand)
          last_operand_read_[node(source).payload] = id;
      }
    }
    // A result that is an operand, a constant or another result is copied behind all others.
    for (const NodeId result : expression_.results()) {
      if (node(result).function == Function::operand)
        last_operand_read_[node(result).payload] = static_cast<NodeId>(reach_.size());
    }
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
    } else if (one.function == Function::constant) {
      homes_[id] = {Kind::splat, new_splat(one.type)};
      constants_.push_back({homes_[id], id});
    } else if (one.function == Function::index) {
      widen(one.type);
      homes_[id] = {Kind::tile, code_.registers++};
      indices_.push_back({homes_[id], id});
    }
  }

  /// The result that it may be written to at once: none of the operands there is read later.
  std::optional<std::size_t> direct_result(NodeId id) const {
    for (std::size_t i = 0; is_result_[id] && i < expression_.results().size(); ++i) {
      if (expression_.results()[i] != id) continue;
      const bool is_free = std::ranges::all_of(
          overwrites_[i], [&](std::size_t operand) { return last_operand_read_[operand] <= id; });
      if (is_free) return i;
    }
    return std::nullopt;
  }

  void compute(NodeId id) {
    const Node& one = node(id);
    const std::vector<NodeId> read = sources(id);
    Draft draft;
    draft.reach = reach_[id];
    Instruction& instruction = draft.instruction;
    instruction.function = one.function;
    instruction.to = one.type;
    if (one.function == Function::select && absorbed_[one.sources[0]])
      instruction.comparison = node(one.sources[0]).function;
    instruction.from = node(read[one.function == Function::select ? 1 : 0]).type;
    for (std::size_t i = 0; i < read.size(); ++i) {
      draft.sources[i] = homes_[read[i]];
      if (reach_[read[i]] != Reach::element)
        instruction.splats = static_cast<std::uint8_t>(instruction.splats | 1u << i);
    }
    widen(one.type);
    if (reach_[id] != Reach::element) {
      homes_[id] = {Kind::splat, new_splat(one.type)};
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
      if (homes_[source].kind != Kind::tile || node(source).function == Function::index) continue;
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

  void copy(NodeId id, Home target) {
    Draft draft;
    draft.instruction = {.function = Function::operand, .from = node(id).type, .to = node(id).type};
    if (reach_[id] != Reach::element) draft.instruction.splats = 1;
    draft.target = target;
    draft.sources[0] = homes_[id];
    drafts_.push_back(draft);
  }

  /// Of operands, constants, and what could not be written at once. An operand that another result
  /// may overwrite before is kept first.
  void copy_results() {
    const auto results = expression_.results();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const NodeId id = results[i];
      const Home home = homes_[id];
      if (home.kind != Kind::operand || !is_overwritten_[home.number]) continue;
      const Home kept{Kind::tile, take()};
      copy(id, kept);
      homes_[id] = kept;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Home home = homes_[results[i]];
      if (home.kind != Kind::result || home.number != i) copy(results[i], {Kind::result, i});
    }
  }

  Place place_of(Home home) const {
    switch (home.kind) {
      case Kind::splat:
        return code_.splat(home.number);
      case Kind::tile:
        return code_.tile(home.number);
      case Kind::result:
        return code_.result(home.number);
      default:
        return static_cast<Place>(home.number);
    }
  }

  void number_places() {
    for (const auto& [home, id] : constants_)
      code_.constants.push_back({place_of(home), node(id).type, node(id).payload});
    for (const auto& [home, id] : indices_)
      code_.indices.push_back({place_of(home), static_cast<int>(node(id).payload)});
    for (Draft& draft : drafts_) {
      if (!holds_splats(draft.instruction)) code_.splat_elements = tile_elements;
      draft.instruction.target = place_of(draft.target);
      for (std::size_t i = 0; i < draft.sources.size(); ++i)
        draft.instruction.sources[i] = place_of(draft.sources[i]);
      auto& list = draft.reach == Reach::run   ? code_.in_run
                   : draft.reach == Reach::row ? code_.in_row
                                               : code_.in_tile;
      list.push_back(draft.instruction);
    }
  }

  const Expression& expression_;
  std::span<const std::vector<std::size_t>> overwrites_;
  Code code_;
  std::vector<Reach> reach_;
  std::vector<int> readers_;
  std::vector<bool> absorbed_, is_result_, is_overwritten_;  // the last one by operand
  std::vector<Home> homes_;
  std::vector<NodeId> last_read_;
  std::vector<NodeId> last_operand_read_;  // by operand
  std::vector<std::size_t> free_;
  std::vector<Draft> drafts_;
  std::vector<std::pair<Home, NodeId>> constants_, indices_;
};

}  // namespace

int source_count(const Instruction& instruction) noexcept {
  if (instruction.function == Function::operand) return 1;
  return info(instruction.function).sources +
         (instruction.comparison == Function::constant ? 0 : 1);
}

Code lower(const Expression& expression, std::span<const Reach> reach,
           std::span<const std::vector<std::size_t>> overwrites) {
  return Lowering(expression, reach, overwrites).run();
}

}  // namespace arenite::expr
