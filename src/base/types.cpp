#include <arenite/error.hpp>
#include <arenite/types.hpp>

#include <algorithm>

#include "src/base/names.hpp"

namespace arenite {
namespace {

template <class Enum, std::size_t N>
Enum parse_name(std::string_view text, const Names<Enum, N>& names, const char* what) {
  if (const auto value = find_name(text, names)) return *value;
  std::string all;
  for (const auto& [value, name] : names) all += (all.empty() ? "" : ", ") + std::string(name);
  fail({.found = "unknown " + std::string(what) + " '" + std::string(text) + "'",
        .expected = "one of " + all});
}

constexpr Names<DType, 5> dtype_names{{{DType::float32, "float32"},
                                       {DType::float64, "float64"},
                                       {DType::int64, "int64"},
                                       {DType::int32, "int32"},
                                       {DType::uint8, "uint8"}}};

constexpr Names<Phase, 5> phase_names{{{Phase::init, "init"},
                                       {Phase::forward, "forward"},
                                       {Phase::backward, "backward"},
                                       {Phase::update, "update"},
                                       {Phase::evaluate, "evaluate"}}};

}  // namespace

std::int64_t size_of(DType type) noexcept {
  switch (type) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::uint8:
      return 1;
  }
  return 0;
}

std::string_view to_string(DType type) noexcept { return name_of(type, dtype_names); }
DType parse_dtype(std::string_view text) { return parse_name(text, dtype_names, "element type"); }
std::string_view to_string(Phase phase) noexcept { return name_of(phase, phase_names); }
Phase parse_phase(std::string_view text) { return parse_name(text, phase_names, "phase"); }

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > max_rank) {
    fail({.found = "a shape of rank " + std::to_string(dims.size()),
          .expected = "a rank of at most 8"});
  }
  rank_ = static_cast<int>(dims.size());
  // 2^48 elements of 8 bytes stay far from overflow in every later sum.
  constexpr std::int64_t limit = std::int64_t{1} << 48;
  bool empty = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      fail({.found = "dimension " + std::to_string(i) + " is " + std::to_string(dims[i]),
            .expected = "a size of at least 0"});
    }
    if (dims[i] > limit) {  // also where another dimension is 0: shape rules add to dimensions
      fail({.found = "dimension " + std::to_string(i) + " is " + std::to_string(dims[i]),
            .expected = "at most 2^48"});
    }
    dims_[i] = dims[i];
    empty = empty || dims[i] == 0;
  }
  if (empty) {
    elements_ = 0;
    return;
  }
  for (std::int64_t dim : dims) {
    if (dim > limit / elements_) {
      fail({.found = "a shape of more than 2^48 elements", .expected = "at most 2^48 elements"});
    }
    elements_ *= dim;
  }
}

std::int64_t Shape::at(int axis) const {
  const int i = axis < 0 ? axis + rank_ : axis;
  if (i < 0 || i >= rank_) {
    fail({.found = "axis " + std::to_string(axis) + " of " + to_string(*this),
          .expected = "an axis below rank " + std::to_string(rank_)});
  }
  return dims_[static_cast<std::size_t>(i)];
}

Shape Shape::with(int axis, std::int64_t size) const {
  static_cast<void>(at(axis));
  auto dims = dims_;
  dims[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)] = size;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_)));
}

bool operator==(const Shape& a, const Shape& b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::int64_t dim : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(dim);
  return text + "]";
}

std::string to_string(const Space& space) {
  return (space.device == DeviceKind::cpu ? "cpu:" : "cuda:") + std::to_string(space.index) +
         (space.memory == MemoryKind::host ? "/host" : "/device");
}

}  // namespace arenite
