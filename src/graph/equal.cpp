#include "src/graph/equal.hpp"

#include <arenite/graph/operator.hpp>
#include <arenite/graph/text.hpp>

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
    return define_all("declared values", declared_values(a_), declared_values(b_)) && regions() &&
           uses("outputs", a_.outputs, b_.outputs) && training();
  }

  std::string why;

 private:
  bool differ(const std::string& what, const std::string& of_a, const std::string& of_b) {
    why = what + ": " + of_a + " against " + of_b;
    return false;
  }
  template <class T>
  bool count(const std::string& what, const T& x, const T& y) {
    return x.size() == y.size() ||
           differ("number of " + what, std::to_string(x.size()), std::to_string(y.size()));
  }

  bool regions() {
    // Inner regions first, as their ops stand before what follows their holder.
    struct Frame {
      RegionId a, b;
      std::size_t next_op = 0, next_region = 0;
    };
    std::vector<Frame> frames;
    const auto enter = [&](RegionId a, RegionId b) {
      frames.push_back({a, b});
      return define_all("parameters of a region", a_[a].parameters, b_[b].parameters) &&
             count("ops", a_[a].ops, b_[b].ops);
    };
    if (!enter(Graph::body, Graph::body)) return false;
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const auto &ops_a = a_[frame.a].ops, &ops_b = b_[frame.b].ops;
      if (frame.next_op == ops_a.size()) {
        if (!uses("results of a region", a_[frame.a].results, b_[frame.b].results)) return false;
        frames.pop_back();
        continue;
      }
      const OpId a = ops_a[frame.next_op], b = ops_b[frame.next_op];
      if (frame.next_region == 0 && !ops(a, b)) return false;
      if (frame.next_region < a_[a].regions.size()) {
        const std::size_t r = frame.next_region++;
        if (!enter(a_[a].regions[r], b_[b].regions[r])) return false;
        continue;
      }
      ++frame.next_op;
      frame.next_region = 0;
    }
    return true;
  }

  bool training() {
    const auto &x = a_.training, &y = b_.training;
    if (x.has_value() != y.has_value())
      return differ("training", x ? "some" : "none", y ? "some" : "none");
    if (!x) return true;
    if (x->optimizer != y->optimizer) return differ("the optimizer", x->optimizer, y->optimizer);
    if (x->learning_rate != y->learning_rate || !same_bits(x->attributes, y->attributes))
      return differ("the optimizer", "attributes", "others");
    return uses("loss", {x->loss}, {y->loss}) && uses("parameters", x->parameters, y->parameters);
  }

  bool ops(OpId ia, OpId ib) {
    const Op &x = a_[ia], &y = b_[ib];
    const std::string what = describe(a_, ia);
    if (x.name() != y.name()) return differ("an op", what, describe(b_, ib));
    if (!same_bits(x.attributes, y.attributes)) return differ(what, "attributes", "others");
    if (x.phase != y.phase)
      return differ(what, std::string(to_string(x.phase)), std::string(to_string(y.phase)));
    if (x.lane != y.lane)
      return differ(what, "lane " + std::to_string(x.lane), "lane " + std::to_string(y.lane));
    if (x.kernel != y.kernel)
      return differ(what, "kernel '" + x.kernel + "'", "kernel '" + y.kernel + "'");
    if (x.where != y.where)
      return differ(what, "origin '" + x.where + "'", "origin '" + y.where + "'");
    if (!count("regions of " + what, x.regions, y.regions)) return false;
    if (!uses("operands of " + what, x.operands, y.operands)) return false;
    if (!define_all("results of " + what, x.results, y.results)) return false;
    if (static_cast<bool>(x.workspace) != static_cast<bool>(y.workspace)) {
      return differ(what, x.workspace ? "a workspace" : "no workspace",
                    y.workspace ? "a workspace" : "no workspace");
    }
    return !x.workspace || define(x.workspace, y.workspace);
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
    if (x.name != y.name) return differ("a value's name", "'" + x.name + "'", "'" + y.name + "'");
    if (x.type != y.type || x.shape != y.shape) return differ(what, type_text(x), type_text(y));
    if (x.size_names != y.size_names) return differ(what, "names of its sizes", "others");
    if (x.batch != y.batch)
      return differ(what, "batch '" + x.batch + "'", "batch '" + y.batch + "'");
    if (x.layout != y.layout) {
      return differ(what, "halo " + std::to_string(x.layout.halo),
                    "halo " + std::to_string(y.layout.halo));
    }
    if (x.offset != y.offset)
      return differ(what, "offset " + std::to_string(x.offset),
                    "offset " + std::to_string(y.offset));
    return storages(x.storage, y.storage, what) &&
           storages(a_.root(ia), b_.root(ib), "the root of " + what);
  }

  bool storages(StorageId ia, StorageId ib, const std::string& what) {
    StorageId &there = storages_[ia.index], &back = back_[ib.index];
    if (there == ib && back == ia) return true;
    if (there || back) return differ(what, "one sharing of bytes", "another");
    there = ib;
    back = ia;
    const Storage &x = a_.storage(ia), &y = b_.storage(ib);
    if (x.name != y.name)
      return differ("storage of " + what, "'" + x.name + "'", "'" + y.name + "'");
    if (x.cls != y.cls)
      return differ("storage of " + what, std::string(to_string(x.cls)),
                    std::string(to_string(y.cls)));
    if (x.space != y.space)
      return differ("storage of " + what, to_string(x.space), to_string(y.space));
    if (x.bytes != y.bytes) {
      return differ("storage of " + what, std::to_string(x.bytes) + " bytes",
                    std::to_string(y.bytes) + " bytes");
    }
    return true;
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
