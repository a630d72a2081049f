#include "tests/grammar/grammar.hpp"

#include <algorithm>
#include <stdexcept>

namespace arenite::testing {
namespace {

/// Reads the notation itself.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool rule(std::string& name, Expression& body) {
    if (skip(), at_ == text_.size()) return false;
    name = word();
    expect("::=");
    body = choice();
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("grammar, byte " + std::to_string(at_) + ": " + why);
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "/*") {
        at_ = text_.find("*/", at_);
        if (at_ == std::string_view::npos) throw std::runtime_error("grammar: an open comment");
        at_ += 2;
      } else if (text_[at_] == ' ' || text_[at_] == '\n') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool accept(std::string_view symbol) {
    skip();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!accept(symbol)) fail("no " + std::string(symbol));
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (begin == at_) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool at_next_rule() {
    const std::size_t before = at_;
    word();
    const bool next = accept("::=");
    at_ = before;
    return next;
  }

  Expression choice() {
    Expression all{.kind = Expression::choice, .parts = {sequence()}};
    while (accept("|")) all.parts.push_back(sequence());
    return all.parts.size() == 1 ? std::move(all.parts[0]) : all;
  }
  Expression sequence() {
    Expression all{.kind = Expression::sequence};
    while (true) {
      skip();
      if (at_ == text_.size() || text_[at_] == '|' || text_[at_] == ')') break;
      if (is_name_character(text_[at_]) && at_next_rule()) break;
      all.parts.push_back(repeated());
    }
    return all;
  }
  Expression repeated() {
    Expression one = single();
    if (accept("-")) one = {.kind = Expression::without, .parts = {std::move(one), single()}};
    // Signs stand right behind what they repeat.
    const char sign = at_ < text_.size() ? text_[at_] : ' ';
    if (sign != '?' && sign != '*' && sign != '+') return one;
    ++at_;
    return {.kind = Expression::repeat,
            .parts = {std::move(one)},
            .least = sign == '+' ? 1U : 0U,
            .most = sign == '?' ? 1U : 0U};
  }
  Expression single() {
    skip();
    if (accept("(")) {
      Expression inner = choice();
      expect(")");
      return inner;
    }
    if (text_[at_] == '\'' || text_[at_] == '"') {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) fail("an open quote");
      Expression literal{.kind = Expression::literal};
      literal.text = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return literal;
    }
    if (accept("[")) return characters();
    return {.kind = Expression::rule, .text = word()};
  }
  char character() {
    const char c = text_.at(at_++);
    if (c != '\\') return c;
    const char escaped = text_.at(at_++);
    if (escaped == 'x') {
      at_ += 2;
      return static_cast<char>(std::stoi(std::string(text_.substr(at_ - 2, 2)), nullptr, 16));
    }
    static const std::map<char, char> known{{'n', '\n'}, {'t', '\t'}, {'v', '\v'},
                                            {'f', '\f'}, {'r', '\r'}, {'\\', '\\'}};
    return known.at(escaped);
  }
  Expression characters() {
    const bool others = text_.at(at_) == '^';
    if (others) ++at_;
    std::vector<bool> in(256);
    while (text_.at(at_) != ']') {
      const auto first = static_cast<unsigned char>(character());
      auto last = first;
      if (text_.at(at_) == '-' && text_.at(at_ + 1) != ']') {
        ++at_;
        last = static_cast<unsigned char>(character());
      }
      for (unsigned c = first; c <= last; ++c) in[c] = true;
    }
    ++at_;
    Expression all{.kind = Expression::characters};
    for (unsigned c = 0; c < 256; ++c) {
      if (in[c] != others) all.text += static_cast<char>(c);
    }
    return all;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

using Ends = std::vector<std::size_t>;

void unite(Ends& all, const Ends& more) {
  for (std::size_t end : more) {
    if (std::find(all.begin(), all.end(), end) == all.end()) all.push_back(end);
  }
}

/// All places where what an expression derives may end, from a place where it may begin.
class Matcher {
 public:
  Matcher(const std::map<std::string, Expression>& rules, std::string_view text)
      : rules_(rules), text_(text) {}

  std::size_t furthest() const noexcept { return furthest_; }
  /// Where the first token from here on begins; asked for each way that might go on.
  std::size_t skip(std::size_t at) {
    const auto [found, first] = skipped_.emplace(at, at);
    if (!first) return found->second;
    while (true) {
      Ends next = ends(rules_.at("SPACE"), at, true);
      if (next.empty()) next = ends(rules_.at("COMMENT"), at, true);
      if (next.empty()) return found->second = at;
      at = *std::max_element(next.begin(), next.end());
    }
  }

  /// `in_token`: nothing may stand between the parts.
  Ends ends(const Expression& e, std::size_t at, bool in_token) {
    switch (e.kind) {
      case Expression::sequence: {
        Ends now{at};
        for (const Expression& part : e.parts) now = from_all(part, now, in_token);
        return now;
      }
      case Expression::choice: {
        Ends all;
        for (const Expression& part : e.parts) unite(all, ends(part, at, in_token));
        return all;
      }
      case Expression::repeat: {
        Ends now{at}, all;
        if (e.least == 0) all = now;
        for (std::size_t times = 1; !now.empty() && (e.most == 0 || times <= e.most); ++times) {
          now = from_all(e.parts[0], now, in_token);
          std::erase_if(now, [&](std::size_t end) {
            return std::find(all.begin(), all.end(), end) != all.end();
          });
          unite(all, now);
        }
        return all;
      }
      case Expression::without: {
        Ends all = ends(e.parts[0], at, in_token);
        const Ends fewer = ends(e.parts[1], at, in_token);
        std::erase_if(all, [&](std::size_t end) {
          return std::find(fewer.begin(), fewer.end(), end) != fewer.end();
        });
        return all;
      }
      case Expression::literal:
        return literal(e.text, at, in_token);
      case Expression::characters:
        if (at < text_.size() && e.text.find(text_[at]) != std::string::npos) return {at + 1};
        return {};
      case Expression::rule:
        return rule(e.text, at, in_token);
    }
    return {};
  }

 private:
  Ends from_all(const Expression& e, const Ends& places, bool in_token) {
    Ends all;
    for (std::size_t at : places) unite(all, ends(e, at, in_token));
    return all;
  }
  bool name_goes_on(std::size_t end) const {
    return end < text_.size() && is_name_character(text_[end]);
  }
  Ends reached(std::size_t begin, Ends all) {
    if (all.empty()) furthest_ = std::max(furthest_, begin);
    return all;
  }
  Ends literal(const std::string& wanted, std::size_t at, bool in_token) {
    if (!in_token) at = skip(at);
    const std::size_t end = at + wanted.size();
    bool fits = text_.substr(at, wanted.size()) == wanted;
    if (fits && !in_token && is_name_character(wanted[0])) fits = !name_goes_on(end);
    if (in_token) return fits ? Ends{end} : Ends{};
    return reached(at, fits ? Ends{end} : Ends{});
  }
  Ends rule(const std::string& name, std::size_t at, bool in_token) {
    const Expression& body = rules_.at(name);
    if (in_token) return ends(body, at, true);
    if (!is_token(name)) {
      const auto known = known_.find({&body, at});
      if (known != known_.end()) return known->second;
      return known_[{&body, at}] = ends(body, at, false);
    }
    at = skip(at);
    Ends all = ends(body, at, true);
    if (all.size() > 1) all = {*std::max_element(all.begin(), all.end())};
    // Digits and letters in one go are one token, and a wrong one.
    if (!all.empty() && is_name_character(text_[all[0] - 1]) && text_[at] != '$' &&
        name_goes_on(all[0]))
      all.clear();
    return reached(at, std::move(all));
  }

  const std::map<std::string, Expression>& rules_;
  std::string_view text_;
  std::size_t furthest_ = 0;
  std::map<std::size_t, std::size_t> skipped_;
  std::map<std::pair<const Expression*, std::size_t>, Ends> known_;
};

class Deriver {
 public:
  Deriver(const std::map<std::string, Expression>& rules, std::mt19937& random,
          const Grammar::Choose& choose)
      : rules_(rules), random_(random), choose_(choose) {}

  std::string run(const std::string& rule, const std::string& asked_by, int depth) {
    if (std::string chosen = choose_(rule, asked_by); !chosen.empty()) return chosen;
    return expression(rules_.at(rule), rule, depth + 1);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  std::string expression(const Expression& e, const std::string& rule, int depth) {
    const bool in_token = is_token(rule);
    switch (e.kind) {
      case Expression::sequence: {
        std::string all;
        for (const Expression& part : e.parts) append(all, expression(part, rule, depth), in_token);
        return all;
      }
      case Expression::choice:
        return expression(e.parts[below(e.parts.size())], rule, depth);
      case Expression::repeat: {
        const std::size_t more = depth > 20 ? 0 : e.most == 1 ? below(2) : below(4);
        std::string all;
        for (std::size_t i = 0; i < e.least + more; ++i)
          append(all, expression(e.parts[0], rule, depth), in_token);
        return all;
      }
      case Expression::without:
        return again_until_allowed(e, rule, depth);
      case Expression::literal:
        return e.text;
      case Expression::characters:
        return {e.text[below(e.text.size())]};
      case Expression::rule:
        return run(e.text, rule, depth);
    }
    return {};
  }
  std::string again_until_allowed(const Expression& e, const std::string& rule, int depth) {
    while (true) {
      std::string text = expression(e.parts[0], rule, depth);
      const Ends fewer = Matcher(rules_, text).ends(e.parts[1], 0, true);
      if (std::find(fewer.begin(), fewer.end(), text.size()) == fewer.end()) return text;
    }
  }
  void append(std::string& all, const std::string& next, bool in_token) {
    if (next.empty()) return;
    if (!in_token && !all.empty()) {
      const bool apart = is_name_character(all.back()) && is_name_character(next[0]);
      static const std::vector<std::string> spaces{" ", "\n", "\t ", "# a comment;\n", "\r\n"};
      if (apart || below(3) == 0) all += spaces[below(4) == 0 ? below(spaces.size()) : 0];
    }
    all += next;
  }

  const std::map<std::string, Expression>& rules_;
  std::mt19937& random_;
  const Grammar::Choose& choose_;
};

}  // namespace

bool is_token(std::string_view rule) noexcept { return rule[0] >= 'A' && rule[0] <= 'Z'; }

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

Grammar::Grammar(std::string_view text) {
  Reader reader(text);
  std::string name;
  Expression body;
  while (reader.rule(name, body)) {
    if (!rules_.emplace(name, std::move(body)).second)
      throw std::runtime_error("grammar: a second rule " + name);
    names_.push_back(name);
  }
}

Derivation Grammar::matches(std::string_view script) const {
  Matcher matcher(rules_, script);
  Derivation result;
  for (const std::size_t end : matcher.ends(rules_.at(names_.front()), 0, false)) {
    const std::size_t last = matcher.skip(end);
    result.whole = result.whole || last == script.size();
    result.furthest = std::max(result.furthest, last);
  }
  result.furthest = std::max(result.furthest, matcher.furthest());
  return result;
}

std::string Grammar::derive(const std::string& rule, std::mt19937& random,
                            const Choose& choose) const {
  return Deriver(rules_, random, choose).run(rule, "", 0);
}

}  // namespace arenite::testing
