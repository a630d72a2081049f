// "Did you mean …?"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace arenite {

/// Finds the candidate that a misspelt name is nearest to, in insertions, deletions and changes of
/// a character: the first of the nearest, but rather one that differs in cases alone.
class Nearest {
 public:
  explicit Nearest(std::string_view name);

  void consider(std::string_view candidate);

  /// Empty where none is near.
  const std::string& found() const noexcept { return found_; }
  /// "did you mean 'conv2d'?"; `otherwise` where none is near.
  std::string hint(std::string otherwise = {}) const;

 private:
  std::string_view name_;
  std::string found_;
  std::size_t edits_;  // fewer than these
  bool is_same_word_ = false;
};

}  // namespace arenite
