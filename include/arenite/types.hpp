// Small vocabulary types used by every room: element types, shapes, spaces, phases, ids.
//
// All are values without heap memory (except Space's name) and safe to use from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace arenite {

enum class DType : std::uint8_t { float32, float64, int64, int32, uint8 };

std::int64_t size_of(DType type) noexcept;  ///< bytes of one element
std::string_view to_string(DType type) noexcept;
DType parse_dtype(std::string_view text);  ///< throws Error on an unknown name

/// The element type that a C++ type stands for.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no element type of Arenite");
  return DType::uint8;
}();
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::uint8;

/// Dimensions of a value, outermost first; rank 0 (a scalar) to 8. Images are N, H, W, C.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t>
                     dims);  ///< throws Error: rank > 8, a negative dimension, overflow

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t at(int axis) const;  ///< bounds-checked; a negative axis counts from the end
  std::int64_t elements() const noexcept { return elements_; }
  std::span<const std::int64_t> dims() const noexcept {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  const std::int64_t* begin() const noexcept { return dims_.data(); }
  const std::int64_t* end() const noexcept { return dims_.data() + rank_; }

  /// The same shape with one dimension replaced.
  Shape with(int axis, std::int64_t size) const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
  std::int64_t elements_ = 1;
};

std::string to_string(const Shape& shape);  ///< "[64, 28, 28, 1]"

enum class DeviceKind : std::uint8_t { cpu, cuda };
enum class MemoryKind : std::uint8_t { host, device };

/// Where bytes may live. Reuse never crosses a space; the key is the whole space.
struct Space {
  DeviceKind device = DeviceKind::cpu;
  int index = 0;
  MemoryKind memory = MemoryKind::host;
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();  ///< bytes

  auto operator<=>(const Space&) const = default;
};

std::string to_string(const Space& space);  ///< "cpu:0/host"

/// A label on ops, and on the arena that holds what they first write.
enum class Phase : std::uint8_t { init, forward, backward, update, evaluate };

std::string_view to_string(Phase phase) noexcept;
Phase parse_phase(std::string_view text);

/// A dense index with a type of its own, so that a value's number is never taken for an op's.
template <class Tag>
struct Id {
  static constexpr std::uint32_t none = 0xffffffffu;

  std::uint32_t index = none;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr explicit operator bool() const noexcept { return index != none; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t alignment) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Every block, and every placement in one, starts on a multiple of this many bytes.
inline constexpr std::int64_t default_alignment = 256;

}  // namespace arenite

template <class Tag>
struct std::hash<arenite::Id<Tag>> {
  std::size_t operator()(arenite::Id<Tag> id) const noexcept { return id.index; }
};
