#include "src/graph/lexer.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/characters.hpp"

namespace arenite::graph {
namespace {

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool ends_raw_name(char c) noexcept {
  return is_space(c) || is_control(c) || c == ',' || c == ')' || c == ';' || c == '#';
}

/// How many bytes the character at the beginning takes in UTF-8; 1 where it is none.
std::size_t character_bytes(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  const std::string_view rest = text.substr(1, bytes - 1);
  const bool complete =
      first < 0xf5 && rest.size() == bytes - 1 && std::all_of(rest.begin(), rest.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
      });
  // Neither longer than need be, nor a surrogate, nor above U+10FFFF.
  const auto second = static_cast<unsigned char>(rest.empty() ? '\x80' : rest[0]);
  const bool exists = first == 0xe0   ? second >= 0xa0
                      : first == 0xed ? second < 0xa0
                      : first == 0xf0 ? second >= 0x90
                      : first == 0xf4 ? second < 0x90
                                      : true;
  return complete && exists ? bytes : 1;
}

int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_hex(std::string& out, char c) {
  constexpr const char* digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += digits[byte / 16];
  out += digits[byte % 16];
}

void append_escaped(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_control(c)) {
    append_hex(out, c);
  } else {
    out += c;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out;
  // Messages are UTF-8, whatever the script is.
  for (std::size_t at = 0; at < text.size();) {
    if (at >= longest) return out + "…";
    const char c = text[at];
    const std::size_t bytes = character_bytes(text.substr(at));
    if (c == '"' || bytes > 1) {
      out += text.substr(at, bytes);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      append_hex(out, c);
    } else {
      append_escaped(out, c);
    }
    at += bytes;
  }
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) append_escaped(out, c);
  return out + "\"";
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.';
  });
}

bool is_raw_name(std::string_view text) noexcept {
  return !text.empty() && text[0] != '"' && std::none_of(text.begin(), text.end(), ends_raw_name);
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the script";
  return "'" + printable(token.spelling) + "'";
}

Lexer::Lexer(std::string_view script, std::string_view filename)
    : script_(script), filename_(filename) {
  // A mark of some editors for UTF-8.
  if (script_.starts_with("\xef\xbb\xbf")) at_ = line_start_ = 3;
}

void Lexer::refuse(Position position, std::string found, std::string expected,
                   std::string hint) const {
  fail({.found = std::move(found),
        .expected = std::move(expected),
        .where =
            filename_ + ":" + std::to_string(position.line) + ":" + std::to_string(position.column),
        .hint = std::move(hint)});
}

char Lexer::peek(std::size_t ahead) const noexcept {
  return ahead < script_.size() - at_ ? script_[at_ + ahead] : '\0';
}

void Lexer::skip_space() {
  for (bool comment = false; at_ < script_.size(); ++at_) {
    const char c = script_[at_];
    if (c == '\n') {
      comment = false;
      ++line_;
      line_start_ = at_ + 1;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && !is_space(c)) {
      return;
    }
  }
}

Token Lexer::finish(Token token, std::size_t begin) const {
  token.spelling = script_.substr(begin, at_ - begin);
  return token;
}

Token Lexer::next() {
  skip_space();
  Token token{.position = position()};
  if (at_ == script_.size()) return token;
  const std::size_t begin = at_;
  const char c = script_[at_];
  if (c == '"') return quoted();
  const bool sign = c == '-' || c == '+';
  if (is_digit(c) || (sign && (is_digit(peek(1)) || is_letter(peek(1)) || peek(1) == '.')))
    return number();
  if (is_letter(c)) {
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++at_;
    token.kind = TokenKind::name;
    token.text = script_.substr(begin, at_ - begin);
    return finish(std::move(token), begin);
  }
  if (c == '$') {
    ++at_;
    while (is_digit(peek())) ++at_;
    token.kind = TokenKind::reference;
    token = finish(std::move(token), begin);
    const auto [end, error] =
        std::from_chars(script_.data() + begin + 1, script_.data() + at_, token.integer);
    if (error != std::errc{}) {
      refuse(token.position, describe(token), "'$' and a number below 2^63, as in $12");
    }
    return token;
  }
  at_ += character_bytes(script_.substr(at_));
  if (c == '<' && peek() == '=') ++at_;
  token.kind = TokenKind::symbol;
  token = finish(std::move(token), begin);
  // '?' is no part of the language: where it stands, the parser knows what is meant.
  if (std::string_view("=()[]{},;@<?").find(c) == std::string_view::npos) {
    refuse(token.position, "unexpected character " + describe(token),
           "a name, a number or punctuation");
  }
  return token;
}

Token Lexer::number() {
  Token token{.position = position()};
  const std::size_t begin = at_++;
  while (
      is_letter(peek()) || is_digit(peek()) || peek() == '.' ||
      ((peek() == '-' || peek() == '+') && (script_[at_ - 1] == 'e' || script_[at_ - 1] == 'E'))) {
    ++at_;
  }
  token = finish(std::move(token), begin);
  // from_chars reads no plus sign.
  const bool plus = script_[begin] == '+';
  const char* first = script_.data() + begin + (plus ? 1 : 0);
  const char* last = script_.data() + at_;
  const std::string_view digits(first, static_cast<std::size_t>(last - first));
  if (digits.find_first_not_of("-0123456789") == std::string_view::npos) {
    token.kind = TokenKind::integer;
    const auto [end, error] = std::from_chars(first, last, token.integer);
    if (error == std::errc::result_out_of_range) {
      refuse(token.position, describe(token), "an integer of at most 64 bits");
    }
    if (error == std::errc{} && end == last) return token;
  } else {
    token.kind = TokenKind::real;
    const auto [end, error] = std::from_chars(first, last, token.real);
    if (error == std::errc::result_out_of_range) {
      refuse(token.position, describe(token), "a number that a double can hold");
    }
    if (error == std::errc{} && end == last) return token;
  }
  refuse(token.position, describe(token), "a number");
}

Token Lexer::quoted() {
  Token token{.kind = TokenKind::text, .position = position()};
  const std::size_t begin = at_++;
  while (true) {
    if (at_ == script_.size() || script_[at_] == '\n') {
      refuse(token.position, "a text without an end", "'\"' on the same line",
             "a line break is written \\n");
    }
    const char c = script_[at_++];
    if (c == '"') break;
    if (c == '\\') {
      escape(token.text);
    } else {
      token.text += c;
    }
  }
  return finish(std::move(token), begin);
}

void Lexer::escape(std::string& into) {
  const char c = peek();
  const int high = c == 'x' ? hex_digit(peek(1)) : -1, low = high < 0 ? -1 : hex_digit(peek(2));
  if (low >= 0) {
    into += static_cast<char>(high * 16 + low);
    at_ += 3;
    return;
  }
  const bool plain = c == '"' || c == '\\';
  if (!plain && c != 'n' && c != 't') {
    const std::string_view rest = script_.substr(at_);
    const std::string_view escaped = rest.substr(0, rest.empty() ? 0 : character_bytes(rest));
    refuse(position(), "unknown escape '\\" + printable(escaped) + "'",
           "\\\", \\\\, \\n, \\t or \\x and two hexadecimal digits");
  }
  into += plain ? c : c == 'n' ? '\n' : '\t';
  ++at_;
}

Token Lexer::raw_name() {
  skip_space();
  if (peek() == '"') return quoted();
  Token token{.kind = TokenKind::name, .position = position()};
  const std::size_t begin = at_;
  while (at_ < script_.size() && !ends_raw_name(script_[at_])) ++at_;
  if (at_ == begin) {
    const Token found = next();
    refuse(token.position, describe(found), "a name");
  }
  token.text = script_.substr(begin, at_ - begin);
  return finish(std::move(token), begin);
}

Lexer::Formula Lexer::formula(const Token& brace) {
  const std::size_t end = std::min(script_.find_first_of("{}", at_), script_.size());
  while (at_ < end && is_space(script_[at_])) {
    if (script_[at_++] != '\n') continue;
    ++line_;
    line_start_ = at_;
  }
  const std::size_t begin = at_;
  const Position first = position();
  for (; at_ < end; ++at_) {
    if (script_[at_] != '\n') continue;
    ++line_;
    line_start_ = at_ + 1;
  }
  if (peek() != '}')
    refuse(brace.position, "a formula without an end", "'}' behind it, and no brace within");
  ++at_;
  std::size_t last = end;
  while (begin < last && is_space(script_[last - 1])) --last;
  return {std::string(script_.substr(begin, last - begin)), first};
}

}  // namespace arenite::graph
