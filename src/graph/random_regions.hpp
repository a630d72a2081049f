// Random graphs with blocks in blocks, for round trips and for replays of plans: operators of
// test_operators.hpp on values of a few sizes, all of them multiples of 256 bytes but for integers.
#pragma once

#include <arenite/graph/regions.hpp>

#include <random>
#include <string>
#include <vector>

#include "src/graph/test_operators.hpp"

namespace arenite::graph::testing {

class RandomRegions {
 public:
  explicit RandomRegions(unsigned seed) : random_(seed) {}

  Graph make() {
    for (int i = 0; i < 3; ++i) {
      const std::string n = std::to_string(i);
      integers_.push_back(builder_.declare("c" + n, DType::int64, Shape{1}, StorageClass::input));
      floats_.push_back(builder_.declare("x" + n, DType::float32, Shape{64 * (1 + below(3))},
                                         StorageClass::input));
    }
    ops(4 + below(8), 0);
    for (int i = 0; i < 2; ++i) graph_.outputs.push_back(any_float());
    return std::move(graph_);
  }

 private:
  /// A result that one block leaves out.
  struct Saved {
    ValueId condition, value;
    std::size_t side;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  ValueId any(const std::vector<ValueId>& list) {
    // Rather what is new.
    const auto n = static_cast<int>(list.size());
    return list[static_cast<std::size_t>(one_in(2) ? below(n) : n - 1 - below(std::min(n, 4)))];
  }
  ValueId any_float() { return any(floats_); }
  ValueId any_integer() { return any(integers_); }
  ValueId like(ValueId other) {
    std::vector<ValueId> same;
    for (ValueId id : floats_) {
      if (graph_[id].shape == graph_[other].shape) same.push_back(id);
    }
    return any(same);
  }

  void ops(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      switch (below(depth < 3 ? 8 : 5)) {
        case 0:
        case 1:
          floats_.push_back(builder_.add1("relu", {any_float()}));
          break;
        case 2:
        case 3: {
          const ValueId a = any_float();
          floats_.push_back(builder_.add1("add", {a, like(a)}));
          break;
        }
        case 4: {
          const ValueId a = any_float();
          const std::int64_t rows = graph_[a].shape[0] / 64;
          const std::int64_t begin = below(static_cast<int>(rows));
          floats_.push_back(
              builder_.add1("slice", {a}, {{"begin", 64 * begin}, {"end", 64 * (begin + 1)}}));
          if (one_in(2)) floats_.push_back(builder_.add1("concat", {a, any_float()}));
          break;
        }
        case 5:
          add_loop(depth);
          break;
        default:
          add_if(depth);
          break;
      }
    }
  }

  /// Yields a few values of the wanted shapes, or of any, and what is for blocks of the same side
  /// only. Often on a condition that has left such values behind.
  void add_if(int depth) {
    const bool again = !saved_.empty() && !one_in(3);
    const ValueId condition =
        again ? saved_[static_cast<std::size_t>(below(static_cast<int>(saved_.size())))].condition
              : any_integer();
    std::vector<RegionId> regions;
    std::vector<ValueId> first;      // for every reader
    std::vector<std::size_t> sides;  // of the others
    for (std::size_t side = 0; side < 2; ++side) {
      const auto floats = floats_.size(), integers = integers_.size(), saved = saved_.size();
      regions.push_back(builder_.begin_region("if", {condition}));
      for (const Saved& known : saved_) {
        if (known.condition == condition && known.side == side) floats_.push_back(known.value);
      }
      ops(1 + below(4), depth + 1);
      std::vector<ValueId> yielded;
      if (side == 0) {
        for (int n = 1 + below(2); n > 0; --n) yielded.push_back(any_float());
        first = yielded;
      } else {
        for (ValueId other : first) yielded.push_back(other_like(other));
        yielded.resize(yielded.size() + sides.size());
      }
      for (int n = below(3); n > 0; --n) {
        yielded.push_back(any_float());
        sides.push_back(side);
      }
      builder_.end_region(yielded);
      floats_.resize(floats);
      integers_.resize(integers);
      saved_.resize(saved);
    }
    // What the second block alone yields.
    graph_[regions[0]].results.resize(first.size() + sides.size());
    const auto results = builder_.add("if", {condition}, {}, regions);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i < first.size()) {
        floats_.push_back(results[i]);
      } else {
        saved_.push_back({condition, results[i], sides[i - first.size()]});
      }
    }
  }

  /// A visible value of the shape, made where there is none.
  ValueId other_like(ValueId other) {
    std::vector<ValueId> same;
    for (ValueId id : floats_) {
      if (graph_[id].shape == graph_[other].shape) same.push_back(id);
    }
    if (!same.empty()) return any(same);
    std::vector<ValueId> parts;
    for (std::int64_t rows = graph_[other].shape[0]; rows > 0; rows -= 64)
      parts.push_back(builder_.add1("slice", {any_float()}, {{"begin", 0}, {"end", 64}}));
    return builder_.add1("concat", parts);
  }

  void add_loop(int depth) {
    std::vector<ValueId> operands{one_in(2) ? any_integer() : ValueId{},
                                  one_in(2) ? any_integer() : ValueId{}};
    const bool conditional = static_cast<bool>(operands[1]);
    for (int n = 1 + below(3); n > 0; --n)
      operands.push_back(operands.size() > 2 && one_in(2) ? like(operands[2]) : any_float());
    const Attributes attributes{{"max_trips", std::int64_t{1 + below(3)}}};
    const auto floats = floats_.size(), integers = integers_.size(), saved = saved_.size();
    const RegionId region = builder_.begin_region("loop", operands, attributes);
    const std::vector<ValueId> parameters = graph_[region].parameters;
    integers_.push_back(parameters[0]);
    floats_.insert(floats_.end(), parameters.begin() + 1, parameters.end());
    ops(1 + below(4), depth + 1);
    std::vector<ValueId> yielded;
    if (conditional) yielded.push_back(any_integer());
    for (std::size_t i = 1; i < parameters.size(); ++i) yielded.push_back(like(parameters[i]));
    builder_.end_region(yielded);
    floats_.resize(floats);
    integers_.resize(integers);
    saved_.resize(saved);
    const auto results = builder_.add("loop", operands, attributes, {region});
    floats_.insert(floats_.end(), results.begin(), results.end());
  }

  std::mt19937 random_;
  Graph graph_;
  Builder builder_{graph_, table()};
  std::vector<ValueId> floats_, integers_;  // visible here
  std::vector<Saved> saved_;                // visible here, in blocks of that side
};

}  // namespace arenite::graph::testing
