#include "src/base/json.hpp"

#include "src/base/refuse.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <utility>

namespace arenite {

using Library = nlohmann::json;

/// What the parser reads becomes values; refuses depth and repeated names.
class Json::Builder : public Library::json_sax_t {
 public:
  Builder(std::string_view where, int levels, std::string_view what)
      : where_(where), levels_(levels), what_(what) {}

  Json take() { return std::move(root_); }

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& /*as_written*/) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Library::binary_t& /*value*/) override { return false; }  // not in texts
  bool start_object(std::size_t /*size*/) override { return put(Json::object(), true); }
  bool start_array(std::size_t /*size*/) override { return put(Json::list(), true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    check_depth();
    if (!open_.back().names.insert(name).second) {
      refuse("field " + Json(name).described() + " twice in one object", "each field once",
             std::string(where_));
    }
    name_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const Library::exception& error) override {
    std::string where(where_);
    // The library counts from 1, the byte just read. Numbers that fit no type have no place.
    if (const auto* at = dynamic_cast<const Library::parse_error*>(&error))
      where += ", byte " + std::to_string(std::max<std::size_t>(at->byte, 1) - 1);
    // Of "[json.exception…] words" the words.
    const std::string message = error.what();
    refuse(message.substr(message.find("] ") + 2), "JSON", std::move(where));
  }

 private:
  struct Open {
    Json* value;
    std::set<std::string> names;
  };

  void check_depth() const {
    constexpr std::size_t deepest = 8;
    if (open_.size() <= deepest) return;
    refuse("values nested deeper than " + std::to_string(deepest),
           std::string(what_) + ", which needs " + std::to_string(levels_) + " levels",
           std::string(where_));
  }
  /// Whether to go on.
  bool put(Json value, bool to_fill = false) {
    check_depth();
    Json& place = open_.empty() ? root_ : open_.back().value->added(std::move(name_));
    place = std::move(value);
    if (to_fill) open_.push_back({&place, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view where_;
  int levels_;
  std::string_view what_;
  Json root_;
  std::vector<Open> open_;  // what is open only grows at its end, where nobody points yet
  std::string name_;
};

/// Numbers and texts as the library prints them.
template <class T>
static std::string scalar(const T& value, const Json::Style& style) {
  using Handler = Library::error_handler_t;
  try {
    return Library(value).dump(-1, ' ', style.ascii,
                               style.replace ? Handler::replace : Handler::strict);
  } catch (const Library::type_error&) {
    refuse("a text that is not UTF-8: " + Json(value).described(), "UTF-8 text");
  }
}

static void print(const Json& json, const Json::Style& style, std::size_t level, std::string& out) {
  const auto new_line = [&](std::size_t at) {
    if (style.indent >= 0)
      out.append(1, '\n').append(at * static_cast<std::size_t>(style.indent), ' ');
  };
  const auto print_all = [&](const auto& items, std::string_view brackets, auto print_one) {
    out += brackets[0];
    for (const auto& item : items) {
      if (&item != items.data()) out += ',';
      new_line(level + 1);
      print_one(item);
    }
    if (!items.empty()) new_line(level);
    out += brackets[1];
  };
  const auto print_value = [&](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::vector<Json>>) {
      print_all(value, "[]", [&](const Json& item) { print(item, style, level + 1, out); });
    } else if constexpr (std::is_same_v<T, std::vector<Json::Member>>) {
      print_all(value, "{}", [&](const Json::Member& member) {
        out += scalar(member.name, style) + (style.indent >= 0 ? ": " : ":");
        print(member.value, style, level + 1, out);
      });
    } else {
      out += scalar(value, style);
    }
  };
  std::visit(print_value, json.value());
}

Json::Json() noexcept = default;
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::initializer_list<Entry> entries) : value_(std::vector<Member>()) {
  for (const Entry& entry : entries) added(std::move(entry.name)) = std::move(entry.value);
}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::object() { return Json(std::initializer_list<Entry>()); }

Json& Json::operator[](std::string_view name) {
  if (value_.index() == 0) *this = object();
  if (const Json* known = find(name)) return const_cast<Json&>(*known);
  return added(std::string(name));
}

Json& Json::added(std::string name) {
  if (auto* items = std::get_if<std::vector<Json>>(&value_)) return items->emplace_back();
  return std::get<std::vector<Member>>(value_).emplace_back(Member{std::move(name), {}}).value;
}

void Json::push_back(Json item) {
  if (value_.index() == 0) *this = list();
  const_cast<std::vector<Json>&>(items()).push_back(std::move(item));
}

Json& Json::back() { return const_cast<Json&>(at(size() - 1)); }

void Json::update(const Json& object) {
  for (const Member& member : object.members()) (*this)[member.name] = member.value;
}

std::string Json::described() const {
  constexpr std::array kinds{"null",   "boolean", "number", "number",
                             "number", "string",  "array",  "object"};
  if (get<std::vector<Json>>() == nullptr && get<std::vector<Member>>() == nullptr) {
    std::string text = dump({.ascii = true, .replace = true});
    if (text.size() <= 40) return text;
  }
  return std::string("a value of type ") + kinds[value_.index()];
}

template <class T>
const T& Json::as(std::string_view expected) const {
  if (const T* value = get<T>()) return *value;
  refuse(described(), std::string(expected));
}

std::int64_t Json::integer() const { return as<std::int64_t>("an integer"); }
double Json::number() const {
  if (const auto* integer = get<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* natural = get<std::uint64_t>()) return static_cast<double>(*natural);
  return as<double>("a number");
}
const std::string& Json::text() const { return as<std::string>("a string"); }
const std::vector<Json>& Json::items() const { return as<std::vector<Json>>("an array"); }
const std::vector<Json::Member>& Json::members() const {
  return as<std::vector<Member>>("an object");
}
std::size_t Json::size() const { return items().size(); }

const Json* Json::find(std::string_view name) const {
  const auto found = std::ranges::find(members(), name, &Member::name);
  return found == members().end() ? nullptr : &found->value;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (found == nullptr) refuse("no field '" + std::string(name) + "'", "one");
  return *found;
}

const Json& Json::at(std::size_t i) const {
  if (i >= size()) refuse("no item " + std::to_string(i), "one of " + std::to_string(size()));
  return items()[i];
}

std::string Json::dump(const Style& style) const {
  std::string out;
  print(*this, style, 0, out);
  return out;
}

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

std::ostream& operator<<(std::ostream& out, const Json& json) {
  return out << json.dump({.replace = true});
}

Json parse_json(std::string_view text, std::string_view where, int levels, std::string_view what) {
  Json::Builder builder(where, levels, what);
  Library::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace arenite
