// Reading JSON that may be anything: values that know the way to them, and bounds for what a text
// can cost. And what several texts write alike.
#pragma once

#include <arenite/plan/problem.hpp>
#include <arenite/types.hpp>

#include "src/base/json.hpp"

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace arenite::plan {

struct ArenaPlan;
struct Plan;

inline constexpr std::int64_t no_capacity = std::numeric_limits<std::int64_t>::max();

/// A value and the way to it, for messages. What it refers to must outlive it.
class Field {
 public:
  Field(const Json& value, std::string path, std::string_view where)
      : value_(value), path_(std::move(path)), where_(where) {}

  [[noreturn]] void wrong(const std::string& found, const std::string& expected) const;

  bool has(const char* key) const {
    return value_.get<std::vector<Json::Member>>() && value_.find(key);
  }
  const Json& value() const noexcept { return value_; }
  /// The text's name and the way to the value.
  std::string place() const;

  // Each throws Error where the value is something else.
  Field operator[](const char* key) const;
  Field operator[](std::size_t i) const;  ///< below size()
  std::size_t size() const;               ///< of an array
  std::int64_t integer(std::int64_t low, std::int64_t high = Problem::limit * 2) const;
  bool boolean() const;
  double duration() const;
  std::string text() const;
  void expect(std::string_view text) const;

 private:
  template <class T>
  const T& as(const std::string& expected) const;

  const Json& value_;
  std::string path_;
  std::string_view where_;
};

/// The inverse of to_string(Space), without the capacity.
Space parse_space(const Field& field);

/// Appends a field to an object's text: a list, an item a line.
template <class Items, class Describe>
void append_list(std::string& text, const char* key, const Items& items, Describe describe) {
  text += std::string(",\n \"") + key + "\": [";
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "\n  " : ",\n  ") + describe(items[i]);
  text += "\n ]";
}

Json json_of(const ArenaPlan& arena);
/// Of what to_json(Plan) writes.
Plan read_plan(const Json& document, std::string_view where);

/// As parse_json(); refuses texts beyond max_json_bytes, too.
Json parse_document(std::string_view text, std::string_view where, int levels,
                    std::string_view what = "a plan");

/// The bytes of a file of at most max_json_bytes, which should hold `what`.
std::string read_document(const std::filesystem::path& file,
                          std::string_view what = "a plan as write_json() writes it");

}  // namespace arenite::plan
