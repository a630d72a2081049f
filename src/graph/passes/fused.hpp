// Operators that do several ops in one go, found by what they do.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace arenite::graph {

/// What does it, and what it does.
template <class Form>
struct Fused {
  std::shared_ptr<const OperatorDefinition> by;
  const Form* form = nullptr;

  const OperatorDefinition* operator->() const noexcept { return by.get(); }
};

/// The operators that do ops in this form, by their names.
template <class Form>
std::vector<Fused<Form>> fused_operators(const OperatorTable& table) {
  std::vector<Fused<Form>> all;
  for (const std::string& name : table.names()) {
    auto definition = table.find(name);
    if (const auto* form = std::get_if<Form>(&definition->does))
      all.push_back({std::move(definition), form});
  }
  return all;
}

/// The one for ops of this operator; nullptr: there is none.
template <class Form>
const Fused<Form>* find(const std::vector<Fused<Form>>& all, std::string_view op) {
  const auto found =
      std::ranges::find_if(all, [&](const Fused<Form>& fused) { return fused.form->op == op; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace arenite::graph
