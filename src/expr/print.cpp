#include <arenite/expr/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::expr {
namespace {

/// What is nested deeper gets a name: neither parse nor print nests without bounds.
constexpr int deepest = 50;
constexpr int closest = 10;  // above all operators' precedences

template <class T>
std::string shortest(T value) {
  std::array<char, 32> text{};
  // Digits alone are read as an integer, and it may be too large for one.
  const bool large = std::is_floating_point_v<T> && std::fabs(static_cast<double>(value)) >= 1e15;
  std::to_chars_result end{};
  if constexpr (std::is_floating_point_v<T>) {
    end = large ? std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific)
                : std::to_chars(text.begin(), text.end(), value);
  } else {
    end = std::to_chars(text.begin(), text.end(), value);
  }
  return {text.begin(), end.ptr};
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";  // to_chars would say whether it is negative
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  return shortest(value);
}

std::string real_text(float value) {
  if (value != value || value == 0) return real_text(static_cast<double>(value));
  const std::string text = shortest(value);
  // A double is read, and rounded again: to another float where it came to lie in the midst of two.
  double read = 0;
  std::from_chars(text.data(), text.data() + text.size(), read);
  return static_cast<float>(read) == value ? text : real_text(static_cast<double>(value));
}

std::string number_text(const Node& constant) {
  return with_value(constant.type, [&]<class T>(T) {
    const T value = value_of<T>(constant.payload);
    if constexpr (std::is_floating_point_v<T>) {
      return real_text(value);
    } else {
      return shortest(static_cast<std::int64_t>(value));
    }
  });
}

/// a to z, then a1 to z1, …: a function with such a name would be passed over.
class Names {
 public:
  std::string next() {
    while (true) {
      std::string name(1, static_cast<char>('a' + count_ % 26));
      if (count_ >= 26) name += std::to_string(count_ / 26);
      ++count_;
      const bool taken =
          type_named(name) ||
          std::ranges::any_of(all_functions(), [&](const auto& f) { return f.name == name; });
      if (!taken) return name;
    }
  }

 private:
  std::size_t count_ = 0;
};

class Printer {
 public:
  explicit Printer(const Expression& expression)
      : expression_(expression), names_(expression.nodes().size()) {}

  std::string print() {
    std::vector<std::size_t> uses(names_.size());
    for (const Node& node : expression_.nodes()) {
      for (const NodeId source : sources_of(node)) ++uses[source];
    }
    for (const NodeId result : expression_.results()) ++uses[result];
    std::vector<int> depths(names_.size());
    Names names;
    for (NodeId id = 0; id < names_.size(); ++id) {
      const auto sources = sources_of(expression_[id]);
      if (sources.empty()) continue;
      for (const NodeId source : sources) depths[id] = std::max(depths[id], depths[source] + 1);
      if (uses[id] == 1 && depths[id] < deepest) continue;
      std::string name = names.next();
      text_ += name + " = ";
      write(id, 0);
      text_ += "; ";
      names_[id] = std::move(name);
      depths[id] = 0;
    }
    text_ += "yield ";
    for (std::size_t i = 0; i < expression_.results().size(); ++i) {
      if (i > 0) text_ += ", ";
      write(expression_.results()[i], 0);
    }
    return std::move(text_);
  }

 private:
  /// In parentheses if its operator binds less close. A constant has its type where nothing beside
  /// it has one.
  void write(NodeId id, int precedence, bool typed = true) {
    const Node& node = expression_[id];
    const FunctionInfo& function = info(node.function);
    if (!names_[id].empty()) {
      text_ += names_[id];
    } else if (node.function == Function::operand) {
      text_ += "$" + std::to_string(node.payload + 1);
    } else if (node.function == Function::index) {
      text_ += "index(" + std::to_string(node.payload) + ")";
    } else if (node.function == Function::count) {
      text_ += "count()";
    } else if (node.function == Function::constant) {
      const std::string number = number_text(node);
      text_ += typed ? std::string(to_string(node.type)) + "(" + number + ")" : number;
    } else if (function.symbol.empty()) {
      text_ += name_of(node);
      text_ += "(";
      write_sources(node, ", ", 0, 0);
      text_ += ")";
    } else {
      const int own = function.precedence;
      const bool looser = own < precedence;
      if (looser) text_ += "(";
      if (function.sources == 1) {
        text_ += function.symbol;
        write_sources(node, "", own, own);
      } else {
        write_sources(node, " " + std::string(function.symbol) + " ", own, own + 1);
      }
      if (looser) text_ += ")";
    }
  }

  std::string_view name_of(const Node& node) const {
    if (node.function == Function::cast) return to_string(node.type);
    if (node.type == Type::boolean && node.function == Function::least) return "all";
    if (node.type == Type::boolean && node.function == Function::greatest) return "any";
    return info(node.function).name;
  }

  void write_sources(const Node& node, const std::string& between, int first, int others) {
    const auto sources = sources_of(node);
    const std::size_t alike = node.function == Function::select ? 1 : 0;  // from here on
    const bool numbers_alone = std::ranges::all_of(sources.subspan(alike), [&](NodeId source) {
      return expression_[source].function == Function::constant;
    });
    // What commutes is read in any order: a + b + c needs no parentheses, c + (a + b) does.
    const bool exchanged = sources.size() == 2 && info(node.function).is(commutes) &&
                           binds(sources[0]) >= others && binds(sources[1]) == first;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (i > 0) text_ += between;
      write(sources[exchanged ? 1 - i : i], i == 0 ? first : others, numbers_alone && i == alike);
    }
  }

  /// The precedence of what is printed for a node.
  int binds(NodeId id) const noexcept {
    const FunctionInfo& function = info(expression_[id].function);
    return function.symbol.empty() || !names_[id].empty() ? closest : function.precedence;
  }

  const Expression& expression_;
  std::vector<std::string> names_;  // empty: printed where it is read
  std::string text_;
};

}  // namespace

std::string print(const Expression& expression) { return Printer(expression).print(); }

}  // namespace arenite::expr
