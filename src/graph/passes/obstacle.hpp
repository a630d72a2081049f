// Why a pass leaves something as it is, for its remarks.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/remarks.hpp>

#include <span>
#include <string>
#include <string_view>

namespace arenite::graph {

/// What stands against a change: a predicate's answer, which is put in words only for whoever asks.
/// In them %v stands for the value, %o for the op, %n for the number and %t for the name.
struct Obstacle {
  const char* words = nullptr;  ///< none: nothing stands against it; "": nothing worth a remark
  ValueId value;
  OpId op;
  std::int64_t number = 0;
  std::string_view name;

  explicit operator bool() const noexcept { return words != nullptr; }
  bool worth_a_remark() const noexcept { return words != nullptr && *words != '\0'; }
};

/// There is nothing that a pass could change.
inline constexpr Obstacle not_meant{""};

std::string in_words(const Graph& graph, const Obstacle& obstacle);

/// Notes what a pass did, and what it became, or what it left, and why; `what` and `became` make
/// text, and are called only for remarks that somebody asks for.
template <class What, class Became>
void note(Remarks* remarks, const Graph& graph, const Obstacle& why, const What& what,
          const Became& became) {
  if (remarks == nullptr) return;
  if (!why) remarks->done.push_back({what(), became()});
  if (why.worth_a_remark()) remarks->left.push_back({what(), in_words(graph, why)});
}

/// "'x'" of a declared value, else "the result of relu 'conv1'", …
std::string name_of(const Graph& graph, ValueId id);
/// "conv2d 'conv1', relu 'relu1'"
std::string describe(const Graph& graph, std::span<const OpId> ops);

}  // namespace arenite::graph
