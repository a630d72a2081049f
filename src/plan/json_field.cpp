#include "src/plan/json_field.hpp"

#include <arenite/plan/json.hpp>

#include "src/base/atomic_file.hpp"

#include <cerrno>
#include <fstream>

#include "src/base/refuse.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

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

template <class T>
const T& Field::as(const std::string& expected) const {
  if (const T* value = value_.get<T>()) return *value;
  wrong(value_.described(), expected);
}

Field Field::operator[](const char* key) const {
  as<std::vector<Json::Member>>("an object");
  const Json* found = value_.find(key);
  if (found == nullptr) wrong("no field '" + std::string(key) + "'", "one");
  return {*found, path_.empty() ? key : path_ + "." + key, where_};
}

Field Field::operator[](std::size_t i) const {
  return {value_.at(i), path_ + "[" + std::to_string(i) + "]", where_};
}

std::size_t Field::size() const { return as<std::vector<Json>>("an array").size(); }
bool Field::boolean() const { return as<bool>("true or false"); }
std::string Field::text() const { return as<std::string>("a string"); }

std::int64_t Field::integer(std::int64_t low, std::int64_t high) const {
  const std::string expected =
      "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  const std::int64_t value = as<std::int64_t>(expected);
  if (value < low || value > high) wrong(value_.described(), expected);
  return value;
}

double Field::duration() const {
  if (!value_.is_number() || value_.number() < 0)
    wrong(value_.described(), "a number of at least 0");
  return value_.number();
}

void Field::expect(std::string_view expected) const {
  if (text() != expected) wrong("'" + text() + "'", "'" + std::string(expected) + "'");
}

Space parse_space(const Field& field) {
  const auto space = parse_space(field.text());
  if (!space) field.wrong("'" + field.text() + "'", std::string(a_space));
  return *space;
}

Json parse_document(std::string_view text, std::string_view where, int levels,
                    std::string_view what) {
  if (text.size() > max_json_bytes) refuse_size(where, what);
  return parse_json(text, where, levels, what);
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
