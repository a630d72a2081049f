// Cuts the text of an expression into tokens. Reads from memory it does not own; never looks past
// its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace arenite::expr {

enum class TokenKind : std::uint8_t { end, operand, name, integer, real, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;      ///< lies within the whole
  std::uint64_t integer = 0;  ///< of an operand too
  double real = 0;

  bool is(std::string_view symbol) const noexcept {
    return kind == TokenKind::symbol && text == symbol;
  }
  bool is_number() const noexcept { return kind == TokenKind::integer || kind == TokenKind::real; }
};

/// "'exp'", "the end of the expression": how messages name a token.
std::string describe(const Token& token);

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token; throws Error on bytes that begin none.
  Token next();

  /// Throws Error at a part of this text.
  [[noreturn]] void refuse(std::string_view part, std::string found, std::string expected,
                           std::string hint = {}) const;
  /// "expression:LINE:COLUMN", both from 1 on, columns in bytes.
  std::string place(std::string_view part) const;

 private:
  char peek(std::size_t ahead = 0) const noexcept;
  Token finish(TokenKind kind, std::size_t begin) const;
  Token operand();
  Token number();
  Token symbol();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace arenite::expr
