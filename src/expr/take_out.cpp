#include "src/expr/take_out.hpp"

#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>

#include <algorithm>
#include <optional>

namespace arenite::expr {
namespace {

class Taker {
 public:
  Taker(const Expression& whole, std::size_t operand)
      : whole_(whole), copies_(whole.nodes().size()) {
    for (std::size_t i = 0; i < whole.operands().size(); ++i) {
      if (i != operand) operands_.push_back(rest_.operand(whole.operands()[i]));
    }
    is_once_.assign(copies_.size(), false);
    for (NodeId id = 0; id < is_once_.size(); ++id) is_once_[id] = is_of(whole[id], operand);
    operand_ = operand;
  }

  TakenOut run() {
    for (NodeId id = 0; id < copies_.size(); ++id) {
      const Node& node = whole_[id];
      if (is_once_[id] || node.function == Function::constant) continue;
      copies_[id] = copy(node);
    }
    std::vector<Value> results;
    for (const NodeId result : whole_.results()) {
      if (!copies_[result]) {
        fail({.found = "result " + std::to_string(results.size() + 1) +
                       ", which is the same for all elements",
              .expected = "one that is made of them"});
      }
      results.push_back(*copies_[result]);
    }
    return {once_.finish(taken_), rest_.finish(results)};
  }

 private:
  /// Of that operand and constants.
  bool is_of(const Node& node, std::size_t operand) const {
    if (node.function == Function::operand) return node.payload == operand;
    if (is_reduction(node.function)) return false;
    bool any = false;
    for (const NodeId source : sources_of(node)) {
      if (!is_once_[source] && whole_[source].function != Function::constant) return false;
      any = any || is_once_[source];
    }
    return any;
  }

  Value copy(const Node& node) {
    if (node.function == Function::operand)
      return operands_[node.payload - (node.payload > operand_ ? 1 : 0)];
    std::vector<Value> sources;
    for (const NodeId source : sources_of(node)) {
      if (!copies_[source]) {
        copies_[source] = is_once_[source] ? taken(source) : rest_.copy(whole_[source], {});
      }
      sources.push_back(*copies_[source]);
    }
    return rest_.copy(node, sources);
  }

  /// What a node of that operand is to the rest.
  Value taken(NodeId id) {
    const Type type = whole_[id].type;
    const Value made = computed(id);
    const bool is_boolean = type == Type::boolean;
    taken_.push_back(is_boolean ? select(made, once_.constant(Type::float32, 1), 0)
                                : once_.cast(Type::float32, made));
    const Value given = rest_.operand(Type::float32);
    return is_boolean ? given != 0 : rest_.cast(type, given);
  }

  Value computed(NodeId id) {
    if (inner_.empty()) inner_.resize(copies_.size());
    if (inner_[id]) return *inner_[id];
    const Node& node = whole_[id];
    if (node.function == Function::operand) return *(inner_[id] = once_.operand(node.type));
    std::vector<Value> sources;
    for (const NodeId source : sources_of(node)) sources.push_back(computed(source));
    return *(inner_[id] = once_.copy(node, sources));
  }

  const Expression& whole_;
  std::size_t operand_ = 0;
  Builder once_, rest_;
  std::vector<Value> operands_;                       // of the rest
  std::vector<std::optional<Value>> copies_, inner_;  // by node, in the rest and once
  std::vector<bool> is_once_;                         // by node
  std::vector<Value> taken_;
};

}  // namespace

TakenOut take_out(const Expression& expression, std::size_t operand) {
  return Taker(expression, operand).run();
}

}  // namespace arenite::expr
