// The words and signs of PTX.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ptx {

struct Token {
  std::string_view text;  ///< empty at the end
  std::uint32_t line = 1;
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  bool is(std::string_view text) const { return token_.text == text; }
  bool at_end() const { return token_.text.empty(); }

  Token take() {
    const Token taken = token_;
    next();
    return taken;
  }
  bool take_if(std::string_view text) {
    if (!is(text)) return false;
    next();
    return true;
  }
  Token expect(std::string_view text) {
    if (!is(text)) fail("'" + std::string(text) + "'");
    return take();
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw std::runtime_error("PTX, line " + std::to_string(token_.line) + ": '" +
                             std::string(token_.text) + "'; expected " + expected);
  }

 private:
  static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
        for (; at_ < end; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
      } else if (rest[0] == '\n' || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r') {
        line_ += rest[0] == '\n' ? 1 : 0;
        ++at_;
      } else {
        return;
      }
    }
  }

  void next() {
    skip_blanks();
    std::size_t end = at_;
    if (end < text_.size() && text_[end] == '"') {
      end = std::min(text_.find('"', end + 1), text_.size() - 1) + 1;
    } else {
      while (end < text_.size() && in_word(text_[end])) ++end;
      if (end == at_ && end < text_.size()) ++end;  // a sign
    }
    token_ = {text_.substr(at_, end - at_), line_};
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  Token token_;
};

}  // namespace ptx
