// Options whose texts are read strictly, from the first character to the last. The parser's own
// conversions saturate, wrap around, and take 010 for 8.
#pragma once

#include "src/cli/command.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arenite::cli {

/// What a text means; none where it means nothing.
template <class T>
using Meaning = std::function<std::optional<T>(const std::string& text)>;

/// Finite, and at least 0; what is too small for a float is 0.
std::optional<float> number_of_at_least_0(const std::string& text);
std::optional<double> real_of_at_least_0(const std::string& text);
std::optional<float> number_from_0_to_below_1(const std::string& text);
/// 0.02, not the double next to that float.
double as_written(float number);

/// "4096", "64MiB", "1.5GiB": above 0 bytes.
std::optional<std::int64_t> bytes_of(const std::string& text);
constexpr const char* a_number_of_bytes = "bytes, as in 4096, 64MiB or 1.5GiB";

/// Of what has no wrong texts, or is checked where it is used.
std::optional<std::string> any_text(const std::string& text);

Rule one_of(std::vector<std::string> names);
/// Neither empty nor "-", by which some programs mean their standard input or output.
Rule a_path();

/// An option whose text's meaning is taken; a text that means nothing is refused with
/// "NAME: 'TEXT'; expected WHAT".
template <class T>
Option* add_taken(Command& command, const std::string& name, std::function<void(T)> take,
                  Meaning<T> meaning, const std::string& what, const std::string& help) {
  const auto refuse = [meaning, what](const std::string& text) {
    return meaning(text) ? std::string() : "'" + text + "'; expected " + what;
  };
  return command.add({.names = {name},
                      .help = help,
                      .kind = "TEXT",
                      .rule = {what, refuse},
                      .take = [take, meaning](const std::string& text) { take(*meaning(text)); }});
}

/// An option that becomes what `meaning` makes of its text.
template <class T, class Into>
Option* add_option(Command& command, const std::string& name, Into& into, Meaning<T> meaning,
                   const std::string& what, const std::string& help) {
  return add_taken<T>(
      command, name, [&into](T value) { into = std::move(value); }, meaning, what, help);
}

/// As add_option, but it may be given again, and each text is one more.
template <class T>
Option* add_each(Command& command, const std::string& name, std::vector<T>& into,
                 Meaning<T> meaning, const std::string& what, const std::string& help) {
  Option* const option = add_taken<T>(
      command, name, [&into](T value) { into.push_back(std::move(value)); }, meaning, what, help);
  option->repeats = true;
  return option;
}

template <class T>
struct Named {
  const char* name;
  T value;
};

/// An option that becomes the value with the name it is given; its default is what `into` holds.
template <class T>
Option* add_named(Command& command, const std::string& name, T& into,
                  const std::vector<Named<T>>& values, const std::string& help) {
  std::vector<std::string> names;
  std::string kind, chosen;
  for (const Named<T>& value : values) {
    names.emplace_back(value.name);
    kind += (kind.empty() ? "" : "|") + names.back();
    if (value.value == into) chosen = names.back();
  }
  const auto take = [&into, values](const std::string& text) {
    for (const Named<T>& value : values) {
      if (text == value.name) into = value.value;
    }
  };
  return command.add({.names = {name},
                      .help = help,
                      .kind = kind,
                      .rule = one_of(names),
                      .take = take,
                      .shown_default = chosen,
                      .offer = {names}});
}

/// What `add_whole_number` takes.
std::optional<std::uint64_t> whole_number(const std::string& text, std::uint64_t least,
                                          std::uint64_t most);
std::string whole_number_text(std::uint64_t least, std::uint64_t most);

/// An option of decimal digits only. `most` must fit into a T.
template <class T>
Option* add_whole_number(Command& command, const std::string& name, T& into, std::uint64_t least,
                         std::uint64_t most, const std::string& help) {
  const auto meaning = [least, most](const std::string& text) -> std::optional<T> {
    return whole_number(text, least, most);
  };
  return add_option<T>(command, name, into, meaning, whole_number_text(least, most), help)
      ->type_name("N");
}

}  // namespace arenite::cli
