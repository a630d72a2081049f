#include <arenite/error.hpp>
#include <arenite/graph/attributes.hpp>

#include <algorithm>
#include <charconv>

#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

template <class T>
const T& typed(const Attributes& attributes, std::string_view name, const char* expected) {
  const AttributeValue* value = attributes.find(name);
  if (!value) fail({.found = "no attribute '" + std::string(name) + "'", .expected = expected});
  const T* held = std::get_if<T>(value);
  if (!held)
    fail({.found = "attribute '" + std::string(name) + "' is " +
                   kind_of(static_cast<AttributeType>(value->index())),
          .expected = expected});
  return *held;
}

template <class T>
void put(std::vector<std::pair<std::string, T>>& items, std::string_view name, T value) {
  auto at =
      std::lower_bound(items.begin(), items.end(), name,
                       [](const auto& item, std::string_view key) { return item.first < key; });
  if (at != items.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items.emplace(at, std::string(name), std::move(value));
  }
}

std::string shortest(double number) {
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, number);
  std::string result(text, end);
  // Keep it a real when it is read back.
  if (result.find_first_of(".en") == std::string::npos) result += ".0";
  return result;
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> items)
    : Attributes(std::vector(items)) {}

Attributes::Attributes(std::vector<std::pair<std::string, AttributeValue>> items) {
  auto made = std::make_shared<Contents>();
  made->items.reserve(items.size());
  for (auto& [name, value] : items) put(made->items, name, std::move(value));
  contents_ = std::move(made);
}

void Attributes::set(std::string_view name, AttributeValue value,
                     std::vector<std::string> size_names) {
  auto made = std::make_shared<Contents>(contents());
  put(made->items, name, std::move(value));
  if (!size_names.empty()) {
    put(made->size_names, name, std::move(size_names));
  } else {
    std::erase_if(made->size_names, [name](const auto& item) { return item.first == name; });
  }
  contents_ = std::move(made);
}

const Attributes::Contents& Attributes::contents() const noexcept {
  static const Contents none;
  return contents_ ? *contents_ : none;
}

const AttributeValue* Attributes::find(std::string_view name) const noexcept {
  for (const auto& [key, value] : items()) {
    if (key == name) return &value;
  }
  return nullptr;
}

const std::vector<std::string>& Attributes::size_names(std::string_view name) const noexcept {
  static const std::vector<std::string> none;
  for (const auto& [key, names] : size_names()) {
    if (key == name) return names;
  }
  return none;
}

std::int64_t Attributes::integer(std::string_view name) const {
  return typed<std::int64_t>(*this, name, "an integer");
}

double Attributes::real(std::string_view name) const {
  const AttributeValue* value = find(name);
  if (value && std::holds_alternative<std::int64_t>(*value))
    return static_cast<double>(std::get<std::int64_t>(*value));
  return typed<double>(*this, name, "a number");
}

const std::string& Attributes::text(std::string_view name) const {
  return typed<std::string>(*this, name, "a text");
}

const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return typed<std::vector<std::int64_t>>(*this, name, "a list of integers");
}

std::string to_string(const AttributeValue& value) {
  struct {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return shortest(v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      std::string text = "[";
      for (std::int64_t i : v) text += (text.size() == 1 ? "" : ", ") + std::to_string(i);
      return text + "]";
    }
  } print;
  return std::visit(print, value);
}

}  // namespace arenite::graph
