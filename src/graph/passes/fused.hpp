// Operators that do several ops in one go, found by what they do.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace arenite::graph {

template <class Form>
struct Fused {
  std::shared_ptr<const OperatorDefinition> by;
  const Form* form = nullptr;
};

/// The operators that do ops in this form, by their names.
template <class Form>
std::vector<Fused<Form>> fused_operators(const OperatorTable& table) {
  std::vector<Fused<Form>> all;
  for (const auto& [name, definition] : table.all()) {
    if (const auto* form = std::get_if<Form>(&definition->does)) all.push_back({definition, form});
  }
  return all;
}

/// The one for ops of this operator; nullptr: there is none.
template <class Form>
const Fused<Form>* find(const std::vector<Fused<Form>>& all, std::string_view of) {
  const auto found =
      std::ranges::find_if(all, [&](const Fused<Form>& fused) { return fused.form->of == of; });
  return found == all.end() ? nullptr : &*found;
}

/// Throws Error where two do the same.
template <class Form>
void expect_one_each(const std::vector<Fused<Form>>& all) {
  for (const Fused<Form>& fused : all) {
    const Fused<Form>* first = find(all, fused.form->of);
    if (first == &fused) continue;
    fail({.found = "operators '" + first->by->name + "' and '" + fused.by->name +
                   "', which both stand for several of '" + fused.form->of + "'",
          .expected = "one of them"});
  }
}

}  // namespace arenite::graph
