// Why a pass leaves something as it is, for its remarks.
#pragma once

#include <arenite/graph/graph.hpp>

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

/// "'x'" of a declared value, else "the result of relu 'conv1'", …
std::string name_of(const Graph& graph, ValueId id);
/// "conv2d 'conv1', relu 'relu1'"
std::string describe(const Graph& graph, std::span<const OpId> ops);

}  // namespace arenite::graph
