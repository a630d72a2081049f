// Scripts whose statements leave their targets out, beside what they say of memory that is changed:
// numbers stand for places there, views for parts of them, and each statement writes where its
// first operand lies.
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace arenite {
namespace {

constexpr int columns = 2;

/// Rows of what lies in memory.
struct Rows {
  std::shared_ptr<std::vector<double>> memory;
  int begin = 0, count = 0;

  double& at(int i) const { return (*memory)[static_cast<std::size_t>(begin * columns + i)]; }
  int elements() const { return count * columns; }
  std::vector<double> copy() const {
    std::vector<double> all;
    for (int i = 0; i < elements(); ++i) all.push_back(at(i));
    return all;
  }
};

struct Number {
  std::string name;
  int rows = 0;
  std::size_t slot = 0;  // of the machine
};

/// What a script's statements do, one after the other.
struct Machine {
  std::vector<Rows> slots;
  bool choose = false;
};
using Step = std::function<void(Machine&)>;

void run_all(const std::vector<Step>& steps, Machine& machine) {
  for (const Step& step : steps) step(machine);
}

class RandomUpdates {
 public:
  explicit RandomUpdates(std::uint32_t seed) : random_(seed) {
    text_ = R"($1 = BufferTensor(a, float32, [6, 2]);
$2 = BufferTensor(b, float32, [4, 2]);
$3 = InputTensor(x, float32, [2, 2]);
$4 = InputTensor(choose, int64, [1]);
)";
    known_ = {{"$1", 6, 0}, {"$2", 4, 1}, {"$3", 2, 2}};
    slots_ = 3;
    const int length = 4 + below(8);
    for (int i = 0; i < length; ++i) add(steps_, 2);
    std::vector<Number> results{known_[0], known_[1]};
    for (int i = 0; i < 3; ++i) results.push_back(any());
    std::string list;
    for (const Number& number : results) {
      list += (list.empty() ? "" : ", ") + number.name;
      outputs_.push_back(number.slot);
    }
    text_ += "result = " + list + ";\n";
  }

  const std::string& script() const { return text_; }
  /// The outputs' rows; `a` and `b` are changed.
  std::vector<std::vector<double>> run(const Rows& a, const Rows& b, const Rows& x,
                                       bool choose) const {
    Machine machine{.slots = {a, b, x}, .choose = choose};
    machine.slots.resize(slots_);
    run_all(steps_, machine);
    std::vector<std::vector<double>> all;
    for (const std::size_t slot : outputs_) all.push_back(machine.slots[slot].copy());
    return all;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  const Number& any() {
    return known_[static_cast<std::size_t>(below(static_cast<int>(known_.size())))];
  }
  std::string next() { return "$" + std::to_string(next_++); }
  Number define(const std::string& name, int rows) {
    known_.push_back({name, rows, slots_++});
    return known_.back();
  }
  /// Not the input, which nothing changes, nor a view of it.
  Number target() {
    for (;;) {
      if (const Number& found = any(); std::ranges::find(fixed_, found.slot) == fixed_.end())
        return found;
    }
  }

  void add(std::vector<Step>& into, int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return view(into);
      case 1:
        return make(into);
      case 2:
      case 3:
        return write(into, "accumulate", [](double was, double more) { return was + more; });
      case 4:
        return write(into, "assign", [](double, double value) { return value; });
      case 5:
        return replace(into);
      case 6:
        return branch(into, depth);
      default:
        return loop(into, depth);
    }
  }

  void view(std::vector<Step>& into) {
    const Number of = any();
    const int rows = 1 + below(of.rows), begin = below(of.rows - rows + 1);
    const std::string name = next();
    text_ += name + " = slice(" + of.name + ", " + std::to_string(begin) + ", " +
             std::to_string(begin + rows) + ");\n";
    const Number made = define(name, rows);
    if (std::ranges::find(fixed_, of.slot) != fixed_.end()) fixed_.push_back(made.slot);
    into.push_back([=](Machine& m) {
      m.slots[made.slot] = m.slots[of.slot];
      m.slots[made.slot].begin += begin;
      m.slots[made.slot].count = rows;
    });
  }

  void make(std::vector<Step>& into) {
    const Number of = any();
    const std::string name = next();
    text_ += name + " = relu(" + of.name + ");\n";
    const Number made = define(name, of.rows);
    into.push_back([=](Machine& m) {
      const auto values = m.slots[of.slot].copy();
      m.slots[made.slot] = {std::make_shared<std::vector<double>>(values), 0, of.rows};
    });
  }

  void write(std::vector<Step>& into, const std::string& op, double (*combine)(double, double)) {
    const Number to = target(), from = any();
    const int rows = std::min(to.rows, from.rows);
    const auto part = [&](const Number& number) {
      if (number.rows == rows) return number;
      const std::string name = next();
      text_ += name + " = slice(" + number.name + ", 0, " + std::to_string(rows) + ");\n";
      return Number{name, rows, number.slot};
    };
    const Number left = part(to), right = part(from);
    text_ += op + "(" + left.name + ", " + right.name + ");\n";
    into.push_back([=](Machine& m) {
      const auto values = m.slots[from.slot].copy();
      for (int i = 0; i < rows * columns; ++i) {
        double& element = m.slots[to.slot].at(i);
        element = combine(element, values[static_cast<std::size_t>(i)]);
      }
    });
  }

  void replace(std::vector<Step>& into) {
    const Number to = target();
    if (to.rows < 2) return;
    const int begin = below(to.rows - 1);
    const std::string at = next();
    text_ += at + " = full(shape=[1], type=int64, value=" + std::to_string(begin) + ");\n" +
             "update_slice(" + to.name + ", $3, " + at + ");\n";
    into.push_back([=](Machine& m) {
      for (int i = 0; i < 2 * columns; ++i)
        m.slots[to.slot].at(begin * columns + i) = m.slots[2].at(i);
    });
  }

  std::vector<Step> block(int depth) {
    const auto outside = known_;
    std::vector<Step> steps;
    for (int i = 1 + below(4); i > 0; --i) add(steps, depth - 1);
    text_ += "yield;\n}";
    known_ = outside;
    return steps;
  }

  void branch(std::vector<Step>& into, int depth) {
    text_ += "if($4) {\n";
    const auto yes = block(depth);
    text_ += " else {\n";
    const auto no = block(depth);
    text_ += "\n";
    into.push_back([=](Machine& m) { run_all(m.choose ? yes : no, m); });
  }

  void loop(std::vector<Step>& into, int depth) {
    const std::string carried = next(), trip = next(), inner = next();
    text_ += carried + " = loop(_, _, $3, max_trips=3) (" + trip + ", " + inner + ") {\n";
    const auto outside = known_;
    std::vector<Step> steps;
    for (int i = 1 + below(4); i > 0; --i) add(steps, depth - 1);
    text_ += "yield " + inner + ";\n}\n";
    known_ = outside;
    into.push_back([=](Machine& m) {
      for (int trips = 0; trips < 3; ++trips) run_all(steps, m);
    });
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Number> known_;
  std::vector<std::size_t> fixed_{2};
  std::vector<std::size_t> outputs_;
  std::vector<Step> steps_;
  std::size_t slots_ = 0;
  int next_ = 5;
};

Rows zeros(int rows) {
  return {std::make_shared<std::vector<double>>(static_cast<std::size_t>(rows * columns)), 0, rows};
}

TEST(ScriptUpdates, AreWhatTheySayOfMemory) {
  runtime::Session session({.workers = 1});
  for (std::uint32_t seed = 0; seed < testing::fewer_where_slow(300U); ++seed) {
    const RandomUpdates random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + random.script());
    std::optional<graph::Graph> graph;
    ASSERT_NO_THROW(graph = graph::parse(random.script(), operators()));
    Model model(session, *graph, {});
    const Rows a = zeros(6), b = zeros(4), x = zeros(2);
    for (int time = 0; time < 3; ++time) {
      std::vector<float> input;
      for (int i = 0; i < x.elements(); ++i) {
        input.push_back(static_cast<float>(1 + i + 4 * time));
        x.at(i) = static_cast<double>(input.back());
      }
      const std::int64_t choose = time % 2;
      const auto expected = random.run(a, b, x, choose != 0);
      std::vector<std::vector<float>> found;
      std::vector<void*> places;
      for (const auto& rows : expected) found.emplace_back(rows.size());
      for (auto& rows : found) places.push_back(rows.data());
      const std::vector<NamedBytes> inputs{{"x", input.data(), std::nullopt},
                                           {"choose", &choose, std::nullopt}};
      model.evaluate(inputs, places);
      for (std::size_t o = 0; o < expected.size(); ++o) {
        for (std::size_t i = 0; i < expected[o].size(); ++i) {
          ASSERT_NEAR(found[o][i], expected[o][i], 1e-5 * std::max(1.0, expected[o][i]))
              << "output " << o << ", element " << i << ", evaluation " << time;
        }
      }
    }
  }
}

}  // namespace
}  // namespace arenite
