// What kind of character a byte is. Not <cctype>: its answers depend on the locale, and bytes above
// 127 are undefined behaviour there.
#pragma once

namespace arenite {

constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace arenite
