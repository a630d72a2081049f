// Values of a random graph, and what they begin with.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/oracle/random_program.hpp"

namespace arenite::oracle {

/// Of the numbers that a declared value begins with.
struct Range {
  double low = -1, high = 1;
};

/// A graph under construction: finds values that fit, and declares new ones.
class RandomValues {
 public:
  static constexpr std::int64_t most_elements = 20000;

  explicit RandomValues(std::uint32_t seed) : draw(seed), builder(graph, operators()) {}

  RandomValues(const RandomValues&) = delete;  // the builder points to the graph
  RandomValues& operator=(const RandomValues&) = delete;

  const Shape& shape(graph::ValueId id) const { return graph[id].shape; }
  graph::StorageClass cls(graph::ValueId id) const { return graph.root_storage(id).cls; }
  const Range& range(graph::ValueId declared) const { return ranges_.at(graph[declared].name); }

  std::vector<bool> is_read() const {
    std::vector<bool> read(graph.value_count(), false);
    for (graph::OpId id : graph[graph::Graph::body].ops) {
      for (graph::ValueId operand : graph[id].operands) {
        if (operand) read[operand.index] = true;
      }
    }
    return read;
  }

  /// Any value that is accepted; mostly one that nobody has read yet. None where there is none.
  template <class Accept>
  graph::ValueId any(Accept accept) {
    const std::vector<bool> read = is_read();
    std::vector<graph::ValueId> all, unread;
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      if (!accept(graph::ValueId(i))) continue;
      all.emplace_back(i);
      if (!read[i] && graph[graph::ValueId(i)].producer) unread.emplace_back(i);
    }
    if (all.empty()) return {};
    return !unread.empty() && draw.chance(60) ? draw.of(unread) : draw.of(all);
  }

  graph::ValueId declare(DType type, const Shape& of, Range range, graph::StorageClass kind) {
    const std::string name = "v" + std::to_string(ranges_.size());
    ranges_[name] = range;
    return builder.declare(name, type, of, kind);
  }

  graph::ValueId declare(DType type, const Shape& of, Range range) {
    using enum graph::StorageClass;
    return declare(type, of, range, draw.of({parameter, parameter, buffer, constant, input}));
  }

  /// A value of just this type and shape: one that is there already, or a new one.
  graph::ValueId like(DType type, const Shape& of, Range range) {
    graph::ValueId found;
    if (draw.chance(60))
      found = any([&](graph::ValueId id) { return graph[id].type == type && shape(id) == of; });
    return found ? found : declare(type, of, range);
  }

  graph::ValueId floats(const Shape& of) { return like(DType::float32, of, {}); }

  /// A number from 0 to `last`, both included: a declared one, or a sum of such.
  graph::ValueId index(std::int64_t last) {
    const auto up_to = [&](std::int64_t most) {
      return declare(DType::int64, {1}, {0, static_cast<double>(most)},
                     draw.of({graph::StorageClass::constant, graph::StorageClass::input,
                              graph::StorageClass::buffer}));
    };
    if (draw.chance(40)) return up_to(last);
    std::int64_t offset = draw.between(0, last), scale = draw.between(1, 3);
    const std::int64_t most = draw.between(0, last - offset), more = (last - offset - most) / scale;
    if (draw.chance(30)) {
      offset += scale * more;
      scale = -scale;
    }
    if (draw.chance(25)) {
      const graph::ValueId from = up_to(last);
      return builder.add1("index_sum", {builder.add1("index_sum", {from}, {{"offset", -offset}})},
                          {{"offset", offset}});
    }
    return builder.add1("index_sum", {up_to(most), up_to(more)},
                        {{"scale", scale}, {"offset", offset}});
  }

  /// A weight of which an output sums over `fan_in` inputs.
  graph::ValueId weight(const Shape& of, std::int64_t fan_in) {
    const double range = 1 / std::sqrt(static_cast<double>(fan_in));
    return like(DType::float32, of, {-range, range});
  }

  graph::ValueId image() {
    const graph::ValueId found = any([&](graph::ValueId id) { return has_rank(id, 4); });
    if (found && draw.chance(85)) return found;
    const auto size = [&] { return draw.of<std::int64_t>({1, 3, 5, 7, 13}); };
    const Shape of{draw.between(1, 3), size(), size(), draw.of<std::int64_t>({1, 3, 5, 16})};
    return declare(DType::float32, of, {});
  }

  graph::ValueId matrix() {
    const graph::ValueId found = any([&](graph::ValueId id) { return has_rank(id, 2); });
    if (found && draw.chance(75)) return found;
    if (draw.chance(60)) return builder.add1("flatten", {image()});
    return declare(DType::float32, {draw.between(1, 5), draw.of<std::int64_t>({1, 3, 7, 13})}, {});
  }

  /// Of any shape but a scalar's.
  graph::ValueId tensor() {
    const graph::ValueId found =
        any([&](graph::ValueId id) { return is_float(id) && shape(id).rank() > 0; });
    return found ? found : image();
  }

  /// Whether an op may make a new version of the value: of each version only one is made. Then none
  /// may any more.
  bool renew(graph::ValueId id) { return renewed_.insert(graph[id].storage).second; }
  bool may_renew(graph::ValueId id) const { return !renewed_.contains(graph[id].storage); }

  Draw draw;
  graph::Graph graph;
  graph::Builder builder;

 private:
  bool is_float(graph::ValueId id) const {
    return graph[id].type == DType::float32 && shape(id).elements() <= most_elements;
  }
  bool has_rank(graph::ValueId id, int rank) const {
    return is_float(id) && shape(id).rank() == rank && shape(id).elements() > 0;
  }

  std::map<std::string, Range> ranges_;  // by name
  std::set<graph::StorageId> renewed_;
};

}  // namespace arenite::oracle
