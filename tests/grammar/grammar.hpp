// A grammar in the W3C's EBNF, as docs/script.ebnf is: derives texts from it, and texts with it.
//
//   Grammar grammar(text_of_the_file);
//   Derivation one = grammar.matches(script);               // .whole, or where it stops fitting
//   std::string text = grammar.derive("statement", choose); // some statement
//
// Rules in capitals are tokens, which take as many characters as they can; SPACE and COMMENT stand
// between tokens. For tests: what is wrong with the grammar itself is a std::runtime_error.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::testing {

struct Expression {
  enum Kind { sequence, choice, repeat, literal, characters, rule, without } kind = sequence;
  std::vector<Expression> parts;
  std::string text;                 // of a literal or rule; all bytes of a class of characters
  std::size_t least = 0, most = 0;  // of a repetition; most = 0: any number
};

struct Derivation {
  bool whole = false;
  std::size_t furthest = 0;  ///< where the first token stands that fits nowhere
};

class Grammar {
 public:
  explicit Grammar(std::string_view text);

  const std::vector<std::string>& rules() const noexcept { return names_; }
  /// The first rule on the whole text.
  Derivation matches(std::string_view script) const;

  /// Replaces what a rule would derive, told the rule that asks for it; an empty text is no answer.
  using Choose = std::function<std::string(const std::string& rule, const std::string& asked_by)>;
  std::string derive(const std::string& rule, std::mt19937& random, const Choose& choose) const;

 private:
  std::vector<std::string> names_;  // in order
  std::map<std::string, Expression> rules_;
};

bool is_token(std::string_view rule) noexcept;
bool is_name_character(char c) noexcept;

}  // namespace arenite::testing
