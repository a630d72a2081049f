// Cuts a script into tokens. Reads from memory it does not own; never looks past its end.
#pragma once

#include <arenite/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace arenite::graph {

struct Position {
  std::size_t line = 1;
  std::size_t column = 1;  ///< in bytes
};

enum class TokenKind : std::uint8_t { end, reference, name, integer, real, text, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  Position position;
  std::string_view spelling;
  std::int64_t integer = 0;  ///< of a reference too
  double real = 0;
  std::string text;  ///< of a name or a quoted text, unescaped

  bool is(char symbol) const noexcept { return kind == TokenKind::symbol && spelling[0] == symbol; }
  bool is_name(std::string_view name) const noexcept {
    return kind == TokenKind::name && text == name;
  }
};

/// "'conv2d'", "the end of the script": how messages name a token.
std::string describe(const Token& token);

/// The same bytes fit for a message: control characters and what is no UTF-8 escaped, long texts
/// cut.
std::string printable(std::string_view text);

/// A text in quotes as the lexer reads it.
std::string quote(std::string_view text);

/// True for what the lexer reads as one name: [A-Za-z_][A-Za-z0-9_.]*
bool is_name(std::string_view text) noexcept;

/// True when `raw_name` reads the whole text.
bool is_raw_name(std::string_view text) noexcept;

class Lexer {
 public:
  Lexer(std::string_view script, std::string_view filename);

  /// The next token; throws Error on bytes that begin none.
  Token next();

  /// The name of a declared value, where one is expected: in quotes, or anything up to white space,
  /// `,`, `)`, `;` or `#`.
  Token raw_name();

  /// What stands behind a brace, up to the closing one, without white space at its ends; and where
  /// it begins.
  struct Formula {
    std::string text;
    Position position;
  };
  Formula formula(const Token& brace);

  /// Throws Error at a position of this script.
  [[noreturn]] void refuse(Position position, std::string found, std::string expected,
                           std::string hint = {}) const;

 private:
  void skip_space();
  Position position() const noexcept { return {line_, at_ - line_start_ + 1}; }
  char peek(std::size_t ahead = 0) const noexcept;
  Token finish(Token token, std::size_t begin) const;
  Token number();
  Token quoted();
  void escape(std::string& into);

  std::string_view script_;
  std::string filename_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
};

}  // namespace arenite::graph
