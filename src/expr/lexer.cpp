#include "src/expr/lexer.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/characters.hpp"
#include "src/base/refuse.hpp"

namespace arenite::expr {
namespace {

bool is_ascii(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }

constexpr std::string_view symbols[] = {"<<", ">>", "<=", ">=", "==", "!=", "+", "-",
                                        "*",  "/",  "%",  "<",  ">",  "&",  "|", "^",
                                        "!",  "~",  "(",  ")",  ",",  ";",  "="};

}  // namespace

std::string describe(const Token& token) {
  constexpr std::size_t longest = 60;
  if (token.kind == TokenKind::end) return "the end of the expression";
  const bool cut = token.text.size() > longest;
  return "'" + std::string(token.text.substr(0, longest)) + (cut ? "…'" : "'");
}

std::string Lexer::place(std::string_view part) const {
  const std::string_view before =
      text_.substr(0, static_cast<std::size_t>(part.data() - text_.data()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  // rfind's npos is one before the beginning.
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return "expression:" + std::to_string(line) + ":" + std::to_string(column);
}

void Lexer::refuse(std::string_view part, std::string found, std::string expected,
                   std::string hint) const {
  arenite::refuse(std::move(found), std::move(expected), place(part), std::move(hint));
}

char Lexer::peek(std::size_t ahead) const noexcept {
  return ahead < text_.size() - at_ ? text_[at_ + ahead] : '\0';
}

Token Lexer::finish(TokenKind kind, std::size_t begin) const {
  return {.kind = kind, .text = text_.substr(begin, at_ - begin)};
}

Token Lexer::next() {
  for (bool comment = false; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment && !is_space(c)) break;
  }
  const std::size_t begin = at_;
  if (at_ == text_.size()) return finish(TokenKind::end, begin);
  if (is_letter(peek())) {
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    return finish(TokenKind::name, begin);
  }
  if (peek() == '$') return operand();
  return is_digit(peek()) || (peek() == '.' && is_digit(peek(1))) ? number() : symbol();
}

Token Lexer::operand() {
  const std::size_t begin = at_++;
  while (is_digit(peek())) ++at_;
  Token token = finish(TokenKind::operand, begin);
  const std::string_view digits = token.text.substr(1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), token.integer);
  if (error != std::errc{})
    refuse(token.text, describe(token), "'$' and the number of an operand, as in $1");
  return token;
}

Token Lexer::number() {
  const std::size_t begin = at_;
  // Letters too: '2x' is no number, rather than two tokens.
  const auto goes_on = [&](char c) {
    return is_letter(c) || is_digit(c) || c == '.' ||
           ((c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'));
  };
  while (goes_on(peek())) ++at_;
  Token token = finish(TokenKind::real, begin);
  const char *first = token.text.data(), *last = first + token.text.size();
  std::from_chars_result read{};
  if (std::all_of(first, last, is_digit)) {
    token.kind = TokenKind::integer;
    read = std::from_chars(first, last, token.integer);
  } else {
    read = std::from_chars(first, last, token.real);
  }
  if (read.ec == std::errc::result_out_of_range) {
    const bool integer = token.kind == TokenKind::integer;
    refuse(token.text, describe(token),
           integer ? "an integer of at most 64 bits" : "a number that a double can hold",
           integer ? "others are written as 1e20" : "");
  }
  if (read.ec != std::errc{} || read.ptr != last) refuse(token.text, describe(token), "a number");
  return token;
}

Token Lexer::symbol() {
  const std::size_t begin = at_;
  const std::string_view rest = text_.substr(at_);
  const auto* known = std::ranges::find_if(
      symbols, [&](std::string_view symbol) { return rest.starts_with(symbol); });
  if (known != std::end(symbols)) {
    at_ += known->size();
    return finish(TokenKind::symbol, begin);
  }
  std::string found;
  for (std::size_t i = 0; i < std::min<std::size_t>(rest.size(), 4); ++i) {
    // Messages are UTF-8, whatever the text is.
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(rest[i]);
    if (i > 0 && (is_ascii(rest[0]) || is_ascii(rest[i]))) break;
    if (byte > 0x20 && byte < 0x7f) {
      found += rest[i];
    } else {
      found = found + "\\x" + digits[byte / 16] + digits[byte % 16];
    }
  }
  refuse(rest, "unexpected character '" + found + "'",
         "an operand, a number, a name or an operator",
         rest[0] == '?' ? "select(condition, yes, no) chooses" : "");
}

}  // namespace arenite::expr
