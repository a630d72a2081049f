// What an op of a formula computes, and what several of them would as one.
#pragma once

#include <arenite/expr/builder.hpp>
#include <arenite/graph/operator.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace arenite::graph {

class FormulaPart {
 public:
  /// What the op says of itself; none: it has no formula, or one that stands for no other's part.
  static std::optional<FormulaPart> of(const Graph& graph, OpId id);

  /// `made` computes what `reads` reads: one part in place of both, which makes of the results of
  /// the first those that are `kept` for others. None: one op would have too much to do, or its
  /// results would be of other shapes. `made` may be of no use afterwards.
  static std::optional<FormulaPart> joined(const Graph& graph, const FormulaPart& made,
                                           const FormulaPart& reads,
                                           const std::vector<ValueId>& kept);

  /// Ops that it does, in their order.
  const std::vector<OpId>& ops() const noexcept { return ops_; }
  bool does(OpId id) const;
  /// What it makes: the last op's results, and others that are kept.
  const std::vector<ValueId>& results() const noexcept { return results_; }
  const std::vector<ValueId>& operands() const noexcept { return operands_; }
  /// Of these operands.
  ElementFormula formula() const;

  const Shape& whole() const noexcept { return whole_; }  ///< to which operands are repeated
  bool reduces() const noexcept { return reduces_; }
  /// By axis of that: whether elements along it are of one group.
  const std::vector<bool>& reduced() const noexcept { return reduced_; }
  /// Whether it is the shape of what is one for a group, with ones for the axes that it lacks.
  bool is_one_a_group(const Shape& shape) const;
  /// How often it goes over a group's elements, the last time for results that have them all.
  int sweeps() const noexcept { return sweeps_; }
  /// Whether something in it is dearer to make again than to keep.
  bool is_dear() const noexcept { return is_dear_; }

 private:
  /// Formulas of one another while they are written: what others wrote there is none of a part's.
  struct Written {
    expr::Builder builder;
    std::vector<std::pair<ValueId, expr::Value>> known;
    std::vector<ValueId> operands;  ///< the builder's

    std::vector<expr::Value> insert(const expr::Expression& expression,
                                    const std::vector<ValueId>& of);
  };

  FormulaPart() = default;
  const expr::Expression& expression() const;  ///< of the operands
  std::optional<std::size_t> find_operands();

  std::vector<OpId> ops_;
  std::vector<ValueId> results_, operands_;
  Shape whole_;
  bool reduces_ = false, keeps_axes_ = true, is_dear_ = false;
  std::vector<bool> reduced_;
  int sweeps_ = 1;
  std::shared_ptr<Written> written_;  ///< none: of one op
  std::vector<expr::Value> made_;     ///< there, by result
  mutable std::optional<expr::Expression> expression_;
};

}  // namespace arenite::graph
