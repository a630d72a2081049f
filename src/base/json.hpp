// JSON values: built and written, or parsed. The library behind them, whose templates take seconds
// of each file that includes it, stays in one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace arenite {

/// Null, true or false, a number, a text, a list or an object, whose members keep their order.
/// What reads throws Error where the value is something else.
class Json {
 public:
  struct Member;
  struct Entry;  ///< {"name", value}, moved into the object that is made of it
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                             std::vector<Json>, std::vector<Member>>;

  Json() noexcept;  ///< null
  Json(std::nullptr_t) noexcept : Json() {}
  template <class T>
  requires std::is_arithmetic_v<T> Json(T number);
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  template <class T>
  Json(const std::vector<T>& items) : Json(list()) {
    for (const T& item : items) push_back(item);
  }
  Json(std::initializer_list<Entry> entries);  ///< an object, of names that differ

  static Json object();
  template <class... T>
  static Json list(T&&... items);

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  /// Null becomes an object, and a member that is not there one that is null.
  Json& operator[](std::string_view name);
  Json& operator[](std::size_t) = delete;  ///< at(i); and 0 would be a name
  /// Null becomes a list.
  void push_back(Json item);
  Json& back();
  /// Members that are there get the other's values; the rest follow.
  void update(const Json& object);

  const Value& value() const noexcept { return value_; }
  /// Of T as in Value; null where it is another.
  template <class T>
  const T* get() const noexcept {
    return std::get_if<T>(&value_);
  }
  bool is_number() const noexcept {
    return get<std::int64_t>() || get<std::uint64_t>() || get<double>();
  }
  /// For messages: the value itself where it is short, for it says more than its kind.
  std::string described() const;

  std::int64_t integer() const;
  double number() const;
  const std::string& text() const;
  const std::vector<Json>& items() const;
  const std::vector<Member>& members() const;
  std::size_t size() const;                       ///< of a list
  const Json* find(std::string_view name) const;  ///< null where an object has none
  const Json& at(std::string_view name) const;    ///< of an object that has one
  const Json& at(std::size_t i) const;            ///< of a list, below its size

  struct Style {
    int indent = -1;       ///< of each level; negative: all on one line
    bool ascii = false;    ///< escapes all else
    bool replace = false;  ///< what is no UTF-8 by U+FFFD, which is refused otherwise
  };
  /// Numbers that are none become null. Throws Error where a text is no UTF-8.
  std::string dump(const Style& style) const;
  std::string dump() const { return dump(Style{}); }

  friend bool operator==(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  class Builder;
  friend Json parse_json(std::string_view, std::string_view, int, std::string_view);
  /// A new null: of a list, or an object's member of this name.
  Json& added(std::string name);
  template <class T>
  const T& as(std::string_view expected) const;

  Value value_;
};

struct Json::Member {
  std::string name;
  Json value;

  friend bool operator==(const Member& a, const Member& b) = default;
};

struct Json::Entry {
  mutable std::string name;
  mutable Json value;
};

template <class T>
requires std::is_arithmetic_v<T> Json::Json(T number) : Json() {
  if constexpr (std::is_same_v<T, bool>) {
    value_ = number;
  } else if constexpr (std::is_floating_point_v<T>) {
    value_ = static_cast<double>(number);
  } else if (std::in_range<std::int64_t>(number)) {
    value_ = static_cast<std::int64_t>(number);
  } else {
    value_ = static_cast<std::uint64_t>(number);
  }
}

template <class... T>
Json Json::list(T&&... items) {
  Json list;
  list.value_.emplace<std::vector<Json>>();
  (list.push_back(std::forward<T>(items)), ...);
  return list;
}

/// Throws Error where the text is no JSON, is nested deeper than 8 levels, which costs memory, or
/// has a field twice in one object. `levels` is what the expected text, `what`, needs.
Json parse_json(std::string_view text, std::string_view where = "JSON", int levels = 8,
                std::string_view what = "a value");

}  // namespace arenite
