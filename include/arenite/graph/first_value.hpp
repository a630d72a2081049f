// How what outlives a step begins: with one number everywhere, or with random ones.
//
// Random numbers are Philox of (seed, Purpose::initialise, number of the value, place in it), and
// so the same on every device and for any number of workers. Bytes of one's own are given to
// whoever builds a program (see Model), and take the place of these.
#pragma once

#include <arenite/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace arenite::graph {

struct FirstValue {
  enum class Kind : std::uint8_t {
    constant,          ///< a
    uniform,           ///< from a to below b
    normal,            ///< of mean a and standard deviation b
    truncated_normal,  ///< the same, within two deviations from the mean
  };
  Kind kind = Kind::constant;
  double a = 0, b = 0;
  std::optional<std::uint64_t> seed = {};  ///< none: that of whoever builds a program

  bool is_zero() const noexcept { return kind == Kind::constant && a == 0; }
  friend bool operator==(const FirstValue&, const FirstValue&) = default;
};

FirstValue constant(double value);
FirstValue uniform(double low, double high, std::optional<std::uint64_t> seed = {});
FirstValue normal(double mean, double deviation, std::optional<std::uint64_t> seed = {});
FirstValue truncated_normal(double mean, double deviation, std::optional<std::uint64_t> seed = {});

/// Whose word it is: "uniform".
std::optional<FirstValue::Kind> first_value_kind(std::string_view word) noexcept;

/// "zeros", "constant(0.5)", "uniform(-1, 1, seed=3)": as scripts have it.
std::string to_string(const FirstValue& first);

/// Throws Error on numbers that are not finite or that the type cannot hold, on a range or a
/// deviation below 0, and on random integers.
void check(const FirstValue& first, DType type);

/// Writes elements of this type. `seed` is for those that say none; `stream` tells values of one
/// seed apart.
void fill(std::span<std::byte> bytes, DType type, const FirstValue& first, std::uint64_t seed,
          std::uint32_t stream);

}  // namespace arenite::graph
