#include "src/graph/equal.hpp"

#include <arenite/graph/operator.hpp>
#include <arenite/graph/text.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>

#include "src/graph/values.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

bool same(const AttributeValue& a, const AttributeValue& b) {
  const auto* x = std::get_if<double>(&a);
  const auto* y = std::get_if<double>(&b);
  // By bits, for -0 differs from 0; all NaN are one.
  if (x && y)
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y) ||
           (*x != *x && *y != *y);
  return a == b;
}

/// Walks both graphs in step and pairs what corresponds.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b)
      : a_(a),
        b_(b),
        values_(a.value_count()),
        storages_(a.storage_count()),
        back_(b.storage_count()) {}

  bool run() {
    return define_all("declared values", declared_values(a_), declared_values(b_)) &&
           regions(Graph::body, Graph::body) && uses("outputs", a_.outputs, b_.outputs) &&
           training() && entries();
  }

  std::string why;

 private:
  bool differ(const std::string& what, const std::string& of_a, const std::string& of_b) {
    why = what + ": " + of_a + " against " + of_b;
    return false;
  }
  /// Otherwise says both in the format's words.
  template <class T>
  bool same(const std::string& what, const char* format, const T& x, const T& y) {
    const auto said = [&](const T& of) { return fmt::format(fmt::runtime(format), of); };
    return x == y || differ(what, said(x), said(y));
  }
  template <class T>
  bool count(const std::string& what, const T& x, const T& y) {
    return same("number of " + what, "{}", x.size(), y.size());
  }

  /// Recursive: what verifies nests at most max_region_depth deep.
  bool regions(RegionId ia, RegionId ib) {
    const Region &x = a_[ia], &y = b_[ib];
    if (!define_all("parameters of a region", x.parameters, y.parameters) ||
        !count("ops", x.ops, y.ops))
      return false;
    for (std::size_t i = 0; i < x.ops.size(); ++i) {
      if (!ops(x.ops[i], y.ops[i])) return false;
    }
    return uses("results of a region", x.results, y.results);
  }

  bool entries() {
    if (!count("entries", a_.entries, b_.entries)) return false;
    for (std::size_t i = 0; i < a_.entries.size(); ++i) {
      const Entry &x = a_.entries[i], &y = b_.entries[i];
      if (!same("an entry", "'{}'", x.name, y.name) ||
          ((x.mode != y.mode || x.averaged != y.averaged) &&
           !differ("entry '" + x.name + "'", "one mode", "another")) ||
          !uses("outputs of entry '" + x.name + "'", x.outputs, y.outputs) ||
          !uses("what entry '" + x.name + "' keeps", x.keeps, y.keeps))
        return false;
    }
    return true;
  }

  bool training() {
    const auto &x = a_.training, &y = b_.training;
    if (!x || !y) return !x == !y || differ("training", x ? "some" : "none", y ? "some" : "none");
    const auto name = [](const auto& optimizer) { return optimizer ? optimizer->name : ""; };
    const auto text = [](const auto& optimizer) { return optimizer ? optimizer->written : ""; };
    return same("the optimizer", "{}", name(x->optimizer), name(y->optimizer)) &&
           ((text(x->optimizer) == text(y->optimizer) && x->learning_rate == y->learning_rate &&
             x->schedule == y->schedule && x->clip_value == y->clip_value &&
             x->clip_norm == y->clip_norm && same_bits(x->attributes, y->attributes) &&
             x->groups == y->groups && x->averaging == y->averaging &&
             x->check_loss == y->check_loss && x->accumulate == y->accumulate) ||
            differ("the optimizer", "attributes", "others")) &&
           uses("loss", {x->loss}, {y->loss}) && uses("parameters", x->parameters, y->parameters);
  }

  bool ops(OpId ia, OpId ib) {
    const Op &x = a_[ia], &y = b_[ib];
    const std::string what = describe(a_, ia);
    const auto scratch = [](const Op& op) { return op.workspace ? "a workspace" : "no workspace"; };
    return ((x.name() == y.name() && x.definition->written == y.definition->written) ||
            differ("an op", what, describe(b_, ib))) &&
           (same_bits(x.attributes, y.attributes) || differ(what, "attributes", "others")) &&
           same(what, "{}", to_string(x.phase), to_string(y.phase)) &&
           same(what, "lane {}", x.lane, y.lane) && same(what, "kernel '{}'", x.kernel, y.kernel) &&
           same(what, "origin '{}'", x.where, y.where) &&
           count("regions of " + what, x.regions, y.regions) &&
           uses("operands of " + what, x.operands, y.operands) &&
           define_all("results of " + what, x.results, y.results) &&
           (!x.workspace == !y.workspace || differ(what, scratch(x), scratch(y))) &&
           (!x.workspace || define(x.workspace, y.workspace)) &&
           std::ranges::equal(x.regions, y.regions,
                              [this](RegionId r, RegionId s) { return regions(r, s); });
  }

  bool uses(const std::string& what, const std::vector<ValueId>& x, const std::vector<ValueId>& y) {
    if (!count(what, x, y)) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const ValueId expected = x[i] ? values_[x[i].index] : ValueId{};
      if (expected != y[i])
        return differ(what, "value " + name(a_, x[i]), "value " + name(b_, y[i]));
    }
    return true;
  }

  static std::string frozen(const Value& value) { return value.frozen ? "frozen" : "not frozen"; }

  static std::string name(const Graph& graph, ValueId id) {
    return id ? "'" + graph[id].name + "'" : "_";
  }

  bool define_all(const std::string& what, const std::vector<ValueId>& x,
                  const std::vector<ValueId>& y) {
    return count(what, x, y) &&
           std::equal(x.begin(), x.end(), y.begin(),
                      [this](ValueId of_x, ValueId of_y) { return define(of_x, of_y); });
  }

  bool define(ValueId ia, ValueId ib) {
    values_[ia.index] = ib;
    const Value &x = a_[ia], &y = b_[ib];
    const std::string what = "value '" + x.name + "'";
    return same("a value's name", "'{}'", x.name, y.name) &&
           ((x.type == y.type && x.shape == y.shape) || differ(what, type_text(x), type_text(y))) &&
           (x.size_names == y.size_names || differ(what, "names of its sizes", "others")) &&
           same(what, "batch '{}'", x.batch, y.batch) &&
           (x.first == y.first || differ(what, to_string(x.first), to_string(y.first))) &&
           (x.frozen == y.frozen || differ(what, frozen(x), frozen(y))) &&
           same(what, "halo {}", x.layout.halo, y.layout.halo) &&
           same(what, "offset {}", x.offset, y.offset) && storages(x.storage, y.storage, what) &&
           storages(a_.root(ia), b_.root(ib), "the root of " + what);
  }

  bool storages(StorageId ia, StorageId ib, const std::string& what) {
    StorageId &there = storages_[ia.index], &back = back_[ib.index];
    if (there == ib && back == ia) return true;
    if (there || back) return differ(what, "one sharing of bytes", "another");
    there = ib;
    back = ia;
    const Storage &x = a_.storage(ia), &y = b_.storage(ib);
    const std::string storage = "storage of " + what;
    return same(storage, "'{}'", x.name, y.name) &&
           same(storage, "{}", to_string(x.cls), to_string(y.cls)) &&
           (x.space == y.space || differ(storage, to_string(x.space), to_string(y.space))) &&
           same(storage, "{} bytes", x.bytes, y.bytes);
  }

  const Graph& a_;
  const Graph& b_;
  std::vector<ValueId> values_;             // of a, to b
  std::vector<StorageId> storages_, back_;  // of a to b, and back
};

}  // namespace

bool same_bits(const Attributes& a, const Attributes& b) {
  const auto same_item = [](const auto& x, const auto& y) {
    return x.first == y.first && same(x.second, y.second);
  };
  return std::ranges::equal(a.items(), b.items(), same_item) && a.size_names() == b.size_names();
}

bool equal(const Graph& a, const Graph& b, std::string* why) {
  Comparison comparison(a, b);
  const bool same = comparison.run();
  if (why) *why = std::move(comparison.why);
  return same;
}

}  // namespace arenite::graph
