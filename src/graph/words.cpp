#include "src/graph/words.hpp"

#include <algorithm>

namespace arenite::graph {

const char* kind_of(AttributeType type) noexcept {
  constexpr const char* kinds[] = {"an integer", "a number", "a text", "a list of integers"};
  return kinds[static_cast<std::size_t>(type)];
}

std::string expected_attributes(const OperatorDefinition& definition) {
  std::string known;
  for (const AttributeSchema& schema : definition.attributes)
    known += (known.empty() ? "one of " : ", ") + schema.name;
  return known.empty() ? "no attributes" : known;
}

const AttributeSchema* formula_of(const OperatorDefinition& definition) noexcept {
  const auto found = std::ranges::find_if(definition.attributes, [](const AttributeSchema& schema) {
    return schema.type == AttributeType::text && !schema.default_value;
  });
  return found == definition.attributes.end() ? nullptr : &*found;
}

bool is_training_setting(std::string_view name) noexcept {
  constexpr std::string_view settings[] = {
      "optimizer",  "learning_rate", "parameters", "schedule", "clip_value", "clip_norm",
      "check_loss", "accumulate",    "average",    "group",    "rank",       "rate"};
  return std::ranges::find(settings, name) != std::end(settings);
}

}  // namespace arenite::graph
