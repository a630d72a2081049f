#include "src/base/words.hpp"

namespace arenite {

std::string digits(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string counted(std::int64_t number, std::string_view one) {
  std::string text = digits(number) + " " + std::string(one);
  if (number == 1) return text;
  const std::string_view vowels = "aeiou";
  if (!one.ends_with('y') || vowels.find(text[text.size() - 2]) != std::string_view::npos)
    return text + "s";
  text.back() = 'i';
  return text + "es";
}

}  // namespace arenite
