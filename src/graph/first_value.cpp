#include <arenite/graph/first_value.hpp>

#include <arenite/error.hpp>
#include <arenite/graph/attributes.hpp>
#include <arenite/random.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>

#include "src/base/element.hpp"
#include "src/base/names.hpp"

namespace arenite::graph {
namespace {

constexpr Names<FirstValue::Kind, 4> kind_names{{
    {FirstValue::Kind::constant, "constant"},
    {FirstValue::Kind::uniform, "uniform"},
    {FirstValue::Kind::normal, "normal"},
    {FirstValue::Kind::truncated_normal, "truncated_normal"},
}};

std::string text(double number) { return to_string(AttributeValue(number)); }

/// By the method of Box and Muller, of words 4·`index` to 4·`index` + 3.
double drawn_normal(const Philox& random, std::uint64_t index) {
  const PhiloxCounter words = random.block(index);
  const auto number = [](std::uint32_t high, std::uint32_t low) {  // in (0, 1), of 53 bits
    return (static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) + 0.5) * 0x1p-53;
  };
  return std::sqrt(-2 * std::log(number(words[0], words[1]))) *
         std::cos(2 * std::numbers::pi * number(words[2], words[3]));
}

/// The number of element `index`, drawn again until it is near enough: 4.6 % are not.
double drawn_near(const Philox& random, std::uint64_t index) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const double found = drawn_normal(random, index + (attempt << 48));
    if (std::abs(found) <= 2) return found;
  }
}

template <class T>
T drawn(const FirstValue& first, const Philox& random, std::uint64_t index) {
  using enum FirstValue::Kind;
  if constexpr (std::is_same_v<T, float>) {
    if (first.kind == uniform)
      return random.uniform(index, static_cast<float>(first.a), static_cast<float>(first.b));
  }
  const double number = first.kind == uniform  ? random.uniform(index)
                        : first.kind == normal ? drawn_normal(random, index)
                                               : drawn_near(random, index);
  const double scale = first.kind == uniform ? first.b - first.a : first.b;
  return static_cast<T>(first.a + scale * number);
}

template <class T>
bool holds(double number) {
  if constexpr (std::is_integral_v<T>) {
    // 2^63 is a double that is one too large.
    const double most = std::ldexp(1, std::numeric_limits<T>::digits);
    // Larger ones may be others than they were written as.
    constexpr double most_exact = 0x1p53;
    return number == std::floor(number) && std::abs(number) <= most_exact && number < most &&
           number >= static_cast<double>(std::numeric_limits<T>::min());
  }
  return std::isfinite(static_cast<T>(number));
}

}  // namespace

FirstValue constant(double value) { return {.a = value}; }
FirstValue uniform(double low, double high, std::optional<std::uint64_t> seed) {
  return {.kind = FirstValue::Kind::uniform, .a = low, .b = high, .seed = seed};
}
FirstValue normal(double mean, double deviation, std::optional<std::uint64_t> seed) {
  return {.kind = FirstValue::Kind::normal, .a = mean, .b = deviation, .seed = seed};
}
FirstValue truncated_normal(double mean, double deviation, std::optional<std::uint64_t> seed) {
  return {.kind = FirstValue::Kind::truncated_normal, .a = mean, .b = deviation, .seed = seed};
}

std::optional<FirstValue::Kind> first_value_kind(std::string_view word) noexcept {
  return find_name(word, kind_names);
}

std::string to_string(const FirstValue& first) {
  if (first.is_zero()) return "zeros";
  std::string all = std::string(name_of(first.kind, kind_names)) + "(" + text(first.a);
  if (first.kind != FirstValue::Kind::constant) all += ", " + text(first.b);
  if (first.seed) all += ", seed=" + std::to_string(*first.seed);
  return all + ")";
}

void check(const FirstValue& first, DType type) {
  const auto refuse = [&](std::string expected) {
    fail({.found =
              "a first value " + to_string(first) + " of " + std::string(arenite::to_string(type)),
          .expected = std::move(expected)});
  };
  const bool is_constant = first.kind == FirstValue::Kind::constant;
  if (!is_constant && !is_real(type))
    refuse("constant(…), for random numbers are float32 or float64");
  with_element(type, [&](auto element) {
    using T = decltype(element);
    if (!holds<T>(first.a) || (!is_constant && !holds<T>(first.b)))
      refuse("numbers that the type can hold");
  });
  const double span = first.kind == FirstValue::Kind::uniform ? first.b - first.a
                                                              : std::abs(first.a) + 10 * first.b;
  if (!is_constant && !std::isfinite(type == DType::float32 ? static_cast<float>(span) : span))
    refuse("a range that the type can hold");
  constexpr std::uint64_t most_seed = std::numeric_limits<std::int64_t>::max();
  if (first.seed.value_or(0) > most_seed) refuse("a seed below 2^63");
  if (first.kind == FirstValue::Kind::uniform && first.b < first.a)
    refuse("the lower number first");
  if (first.kind != FirstValue::Kind::uniform && first.b < 0)
    refuse("a standard deviation of at least 0");
}

void fill(std::span<std::byte> bytes, DType type, const FirstValue& first, std::uint64_t seed,
          std::uint32_t stream) {
  const Philox random(first.seed.value_or(seed), Purpose::initialise, stream);
  with_element(type, [&](auto element) {
    using T = decltype(element);
    const std::size_t count = bytes.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = first.kind == FirstValue::Kind::constant ? static_cast<T>(first.a)
                                                               : drawn<T>(first, random, i);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace arenite::graph
