// What operators say that they are on a share of their work (`of_share`), against the whole.
#include "codelets/testing.hpp"
#include "tests/reference/operator_cases.hpp"

#include <map>

namespace arenite::reference {
namespace {

using graph::OfShare;
using graph::Share;
using graph::Split;
using Result = OfShare::Result;

int axis_of(Split split) noexcept { return split == Split::columns ? 1 : 0; }

/// Some places of an axis of a tensor, as a share has them.
struct Places {
  std::int64_t outer = 1, all = 0, inner = 1, begin = 0, count = 0;

  Places(const Shape& whole, int axis, const Share& share)
      : all(whole[axis]), begin(share.begin), count(share.count) {
    for (int i = 0; i < whole.rank(); ++i) {
      if (i < axis) outer *= whole[i];
      if (i > axis) inner *= whole[i];
    }
  }
  /// Calls f(i of the whole, i of the part).
  template <class F>
  void for_each(F f) const {
    std::size_t part = 0;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < count * inner; ++i)
        f(static_cast<std::size_t>((o * all + begin) * inner + i), part++);
    }
  }
};

/// An op of its own on declared values, in double.
struct Alone {
  graph::Graph graph;
  std::vector<graph::ValueId> operands, results;

  void add(std::string_view op, const std::vector<graph::ResultType>& types,
           const graph::Attributes& attributes) {
    graph::Builder builder(graph, operators());
    for (std::size_t i = 0; i < types.size(); ++i)
      operands.push_back(builder.declare("operand" + std::to_string(i), types[i].type,
                                         types[i].shape, graph::StorageClass::buffer));
    results = builder.add(std::string(op), operands, attributes);
  }
};

class Shares {
 public:
  Shares(const OperatorGraph& op, Evaluator& whole, std::vector<Split> split, std::string where)
      : graph_(op.graph),
        op_(graph_[graph_[graph::Graph::body].ops.front()]),
        whole_(whole),
        split_(std::move(split)),
        where_(std::move(where)) {}

  /// Cut at `cut` of `length`; false where the operator has no such share.
  bool compare(std::int64_t length, std::int64_t cut) {
    got_.clear();
    for (const graph::ValueId result : op_.results) got_.emplace_back(graph_[result].shape);
    OfShare last;
    for (const auto& [begin, count] : {std::pair{std::int64_t{0}, cut}, {cut, length - cut}}) {
      const Share share{split_, begin, count};
      const auto of = op_.definition->of_share({graph_, op_}, share);
      if (!of) return false;
      EXPECT_EQ(of->results.size(), got_.size()) << where_;
      run(share, *of);
      last = *of;
    }
    for (const OfShare::Finish& one : last.finish) finish(one);
    for (std::size_t i = 0; i < got_.size(); ++i) {
      const std::string which = where_ + ", result " + std::to_string(i);
      if (last.results[i] != Result::sum) {
        EXPECT_EQ(got_[i].shape[last.results[i] == Result::columns ? 1 : 0], length) << which;
      }
      codelets::testing::expect_close(got_[i].data, whole_[op_.results[i]].data, 1e-12, which);
    }
    return true;
  }

 private:
  bool finishes(const OfShare& of, std::size_t operand) const {
    return std::ranges::any_of(of.finish, [&](const OfShare::Finish& one) {
      return std::ranges::find(one.operands, operand) != one.operands.end();
    });
  }

  void run(const Share& share, const OfShare& of) {
    std::vector<graph::ResultType> types;
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < op_.operands.size(); ++i) {
      if (finishes(of, i)) continue;
      const graph::Value& value = graph_[op_.operands[i]];
      types.push_back({value.type, split_[i] == Split::none
                                       ? value.shape
                                       : value.shape.with(axis_of(split_[i]), share.count)});
      taken.push_back(i);
    }
    Alone part;
    part.add(of.name.empty() ? op_.name() : of.name, types, of.attributes);
    Evaluator evaluator(part.graph);
    for (std::size_t k = 0; k < taken.size(); ++k) {
      const Tensor& from = whole_[op_.operands[taken[k]]];
      Tensor& to = evaluator[part.operands[k]];
      const Split split = split_[taken[k]];
      if (split == Split::none) {
        to.data = from.data;
      } else {
        Places(from.shape, axis_of(split), share).for_each([&](std::size_t w, std::size_t p) {
          to.data[p] = from.data[w];
        });
      }
    }
    evaluator.run();
    for (std::size_t i = 0; i < got_.size(); ++i) {
      const bool sums = of.results[i] == Result::sum;
      const int along = of.results[i] == Result::columns ? 1 : 0;
      ASSERT_EQ(part.graph[part.results[i]].shape,
                sums ? got_[i].shape : got_[i].shape.with(along, share.count))
          << where_;
      const std::vector<double>& mine = evaluator[part.results[i]].data;
      std::vector<double>& all = got_[i].data;
      if (sums) {
        for (std::size_t k = 0; k < mine.size(); ++k) all.at(k) += mine[k];
      } else {
        Places(got_[i].shape, along, share).for_each([&](std::size_t w, std::size_t p) {
          all.at(w) = mine.at(p);
        });
      }
    }
  }

  /// Of the first result.
  void finish(const OfShare::Finish& one) {
    std::vector<graph::ResultType> types{{DType::float32, got_.front().shape}};
    for (const std::size_t i : one.operands)
      types.push_back({graph_[op_.operands[i]].type, graph_[op_.operands[i]].shape});
    Alone last;
    last.add(one.name, types, {});
    Evaluator evaluator(last.graph);
    evaluator[last.operands.front()].data = got_.front().data;
    for (std::size_t k = 0; k < one.operands.size(); ++k)
      evaluator[last.operands[k + 1]].data = whole_[op_.operands[one.operands[k]]].data;
    evaluator.run();
    got_.front() = evaluator[last.results.front()];
  }

  const graph::Graph& graph_;
  const graph::Op& op_;
  Evaluator& whole_;
  const std::vector<Split> split_;
  const std::string where_;
  std::vector<Tensor> got_;  // by result
};

/// The next of all ways of splitting so many operands; false behind the last.
bool next(std::vector<Split>& split) {
  for (Split& one : split) {
    one = one == Split::none ? Split::rows : one == Split::rows ? Split::columns : Split::none;
    if (one != Split::none) return true;
  }
  return false;
}

/// Of the axes that are split, all alike and of two places or more; 0: there is none. Where all
/// operands are whole, the op makes rows of its result.
std::int64_t length_of(const OperatorCase& what, const std::vector<Split>& split,
                       const Shape& made) {
  std::int64_t length = 0;
  bool whole = true;
  for (std::size_t i = 0; i < split.size(); ++i) {
    if (split[i] == Split::none) continue;
    whole = false;
    const Shape& shape = what.operands[i].shape;
    if (shape.rank() <= axis_of(split[i])) return 0;
    const std::int64_t mine = shape[axis_of(split[i])];
    if (mine < 2 || (length != 0 && length != mine)) return 0;
    length = mine;
  }
  return whole && made.rank() > 0 ? made[0] : length;
}

// Whatever operands are split, where the operator says what becomes of it, it is right.
TEST(Shares, MakeUpTheWhole) {
  std::mt19937 random(4);
  std::map<std::string, int> compared;
  for (const OperatorCase& what : operator_cases()) {
    if (!operators().at(what.op)->of_share) continue;
    compared[what.op] += 0;
    const OperatorGraph op(what, operators());
    Evaluator whole(op.graph);
    fill(what, op, whole, random);
    whole.run();
    const Shape made = op.result ? op.graph[op.result].shape : Shape{};
    std::vector<Split> split(what.operands.size(), Split::none);
    do {
      const std::int64_t length = length_of(what, split, made);
      std::string where = text(what) + ", operands";
      for (const Split one : split) where += " " + std::to_string(static_cast<int>(one));
      Shares shares(op, whole, split, where);
      for (std::int64_t cut = 1; cut < length; ++cut)
        compared[what.op] += shares.compare(length, cut) ? 1 : 0;
    } while (next(split));
  }
  EXPECT_GE(compared.size(), 24u);
  for (const auto& [name, count] : compared) EXPECT_GT(count, 0) << name;
}

}  // namespace
}  // namespace arenite::reference
