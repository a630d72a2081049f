#include "src/plan/json_field.hpp"

#include <arenite/plan/json.hpp>

#include "src/base/atomic_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <set>

#include "src/base/refuse.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

using nlohmann::json;

std::string kind_of(const json& value) {
  // The value itself where it is short, for it says more than its type.
  if (value.is_primitive()) {
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() <= 40) return text;
  }
  return std::string("a value of type ") + value.type_name();
}

/// The parser's own view of the text: refuses depth, which costs memory, and repeated keys, of
/// which it would keep the last only.
class Guard {
 public:
  Guard(std::string_view where, int levels, std::string_view what)
      : where_(where), levels_(levels), what_(what) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    constexpr int deepest = 8;
    if (depth > deepest) {
      refuse("values nested deeper than " + std::to_string(deepest),
             std::string(what_) + ", which needs " + std::to_string(levels_) + " levels",
             std::string(where_));
    }
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed).second) {
      refuse("field " + kind_of(parsed) + " twice in one object", "each field once",
             std::string(where_));
    }
    return true;
  }

 private:
  std::string_view where_;
  int levels_;
  std::string_view what_;
  std::vector<std::set<std::string>> keys_;
};

/// Of "[json.exception…] words" the words.
std::string without_tag(const std::string& message) {
  const auto tag = message.find("] ");
  return tag == std::string::npos ? message : message.substr(tag + 2);
}

[[noreturn]] void refuse_size(std::string_view where, std::string_view what = "a plan") {
  refuse("more than " + std::to_string(max_json_bytes) + " bytes",
         std::string(what) + " below that size", std::string(where));
}

}  // namespace

std::string Field::place() const {
  return std::string(where_) + (path_.empty() ? "" : ", " + path_);
}

void Field::wrong(const std::string& found, const std::string& expected) const {
  refuse(found, expected, place());
}

Field Field::operator[](const char* key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (!value_.is_object()) wrong(kind_of(value_), "an object");
  const auto it = value_.find(key);
  if (it == value_.end()) wrong(std::string("no field '") + key + "'", "one");
  return {*it, path, where_};
}

Field Field::operator[](std::size_t i) const {
  return {value_[i], path_ + "[" + std::to_string(i) + "]", where_};
}

std::size_t Field::size() const {
  if (!value_.is_array()) wrong(kind_of(value_), "an array");
  return value_.size();
}

std::int64_t Field::integer(std::int64_t low, std::int64_t high) const {
  const bool whole = value_.is_number_integer() &&
                     !(value_.is_number_unsigned() &&
                       value_.get<std::uint64_t>() > static_cast<std::uint64_t>(no_capacity));
  if (!whole || value_.get<std::int64_t>() < low || value_.get<std::int64_t>() > high) {
    wrong(kind_of(value_),
          "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value_.get<std::int64_t>();
}

bool Field::boolean() const {
  if (!value_.is_boolean()) wrong(kind_of(value_), "true or false");
  return value_.get<bool>();
}

double Field::duration() const {
  if (!value_.is_number() || !std::isfinite(value_.get<double>()) || value_.get<double>() < 0) {
    wrong(kind_of(value_), "a number of at least 0");
  }
  return value_.get<double>();
}

std::string Field::text() const {
  if (!value_.is_string()) wrong(kind_of(value_), "a string");
  return value_.get<std::string>();
}

void Field::expect(std::string_view expected) const {
  if (text() != expected) wrong("'" + text() + "'", "'" + std::string(expected) + "'");
}

Space parse_space(const Field& field) {
  const auto space = parse_space(field.text());
  if (!space) field.wrong("'" + field.text() + "'", std::string(a_space));
  return *space;
}

json parse_document(std::string_view text, std::string_view where, int levels,
                    std::string_view what) {
  if (text.size() > max_json_bytes) refuse_size(where, what);
  try {
    return json::parse(text.begin(), text.end(), Guard(where, levels, what));
  } catch (const json::parse_error& error) {
    // The library counts from 1, the byte just read.
    refuse(
        without_tag(error.what()), "JSON",
        std::string(where) + ", byte " + std::to_string(std::max<std::size_t>(error.byte, 1) - 1));
  } catch (const json::exception& error) {  // a number that fits no type, for one
    refuse(without_tag(error.what()), "JSON", std::string(where));
  }
}

std::string read_document(const std::filesystem::path& file, std::string_view what) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::string piece(std::size_t{1} << 16, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())),
         stream.gcount() > 0) {
    text.append(piece, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_json_bytes) refuse_size(file.string());
  }
  if (!stream.eof()) {
    refuse("cannot read it" + (errno != 0 ? ": " + system_reason() : ""), std::string(what),
           file.string());
  }
  return text;
}

}  // namespace arenite::plan
