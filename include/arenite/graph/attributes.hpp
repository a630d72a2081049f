// Named constants of an op: stride, padding, momentum, … A small ordered map of typed values.
// Copies share them: what refers to one lasts until all that share it are changed or gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace arenite::graph {

using AttributeValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> items);
  /// Of several of one name the last one counts.
  explicit Attributes(std::vector<std::pair<std::string, AttributeValue>> items);

  /// With names for numbers, as `size_names` has them, or with none.
  void set(std::string_view name, AttributeValue value, std::vector<std::string> size_names = {});
  bool has(std::string_view name) const noexcept { return find(name) != nullptr; }
  const AttributeValue* find(std::string_view name) const noexcept;

  /// Typed reads; throw Error when the attribute is missing or of another type.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  ///< accepts an integer too
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;

  /// In name order, so that printing and hashing never depend on insertion order.
  const std::vector<std::pair<std::string, AttributeValue>>& items() const noexcept {
    return contents().items;
  }

  /// Of an attribute of numbers: by number, the name of a size that only a run decides, whose upper
  /// bound the number is, or "". Empty when none is named. See run_time_sizes.hpp.
  const std::vector<std::string>& size_names(std::string_view name) const noexcept;
  /// Of all attributes that have some, in name order.
  const std::vector<std::pair<std::string, std::vector<std::string>>>& size_names() const noexcept {
    return contents().size_names;
  }

  friend bool operator==(const Attributes& a, const Attributes& b) {
    return a.contents() == b.contents();
  }

 private:
  struct Contents {
    std::vector<std::pair<std::string, AttributeValue>> items;
    std::vector<std::pair<std::string, std::vector<std::string>>> size_names;

    friend bool operator==(const Contents&, const Contents&) = default;
  };

  const Contents& contents() const noexcept;

  std::shared_ptr<const Contents> contents_;  ///< none: empty
};

std::string to_string(const AttributeValue& value);  ///< as the text form writes it

}  // namespace arenite::graph
