// Random reductions, their results compared with the scalar evaluator's, and their gradients with
// differences.
#pragma once

#include <map>
#include <random>

#include "codelets/map/map_testing.hpp"

namespace arenite::codelets::testing {

using List = std::vector<std::int64_t>;

inline graph::Attributes formula(const std::string& text, List axes, std::int64_t keep = 0) {
  return {{"axes", std::move(axes)}, {"keep", keep}, {map_expression, text}};
}

/// What a reduction is, group by group; all values are of one type.
template <class T>
class ReduceReference {
 public:
  ReduceReference(const std::string& text, const Shape& whole, const List& axes,
                  std::vector<Shape> operands)
      : whole_(whole), shapes_(std::move(operands)) {
    const auto type = type_of(std::is_same_v<T, double>         ? DType::float64
                              : std::is_same_v<T, float>        ? DType::float32
                              : std::is_same_v<T, std::int32_t> ? DType::int32
                                                                : DType::int64);
    formula_ = expr::parse(text, std::vector(shapes_.size(), type));
    std::map<std::int64_t, std::vector<std::int64_t>> groups;
    for (std::int64_t i = 0; i < whole.elements(); ++i) {
      std::int64_t key = 0, left = i, step = 1;
      for (int axis = whole.rank(); axis-- > 0; left /= whole[axis]) {
        if (std::ranges::find(axes, axis) != axes.end()) continue;
        key += left % whole[axis] * step;
        step *= whole[axis];
      }
      groups[key].push_back(i);
    }
    for (const auto& [key, elements] : groups) groups_.push_back(elements);
  }

  const expr::Expression& formula() const { return formula_; }

  /// By result: an element for each of the whole's, or one for each group.
  template <class Out = T>
  std::vector<std::vector<double>> results(const std::vector<std::vector<T>>& operands) const {
    const auto varies = formula_.varying();
    std::vector<std::vector<double>> all(formula_.results().size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      const bool is_one = !varies[formula_.results()[r]];
      all[r].resize(is_one ? groups_.size() : static_cast<std::size_t>(whole_.elements()));
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::vector<std::uint64_t>> given;
      std::vector<std::vector<std::int64_t>> indices;
      for (const std::int64_t i : groups_[g]) {
        given.emplace_back();
        for (std::size_t k = 0; k < shapes_.size(); ++k)
          given.back().push_back(expr::payload_of(
              operands[k][static_cast<std::size_t>(seen_at(whole_, shapes_[k], i))]));
        indices.emplace_back(static_cast<std::size_t>(whole_.rank()));
        for (std::int64_t axis = whole_.rank(), left = i; axis-- > 0;
             left /= whole_[static_cast<int>(axis)])
          indices.back()[static_cast<std::size_t>(axis)] = left % whole_[static_cast<int>(axis)];
      }
      const auto made = expr::evaluate_group(formula_, given, indices);
      for (std::size_t r = 0; r < all.size(); ++r) {
        const bool is_one = !varies[formula_.results()[r]];
        for (std::size_t i = 0; i < made.size(); ++i) {
          const double value = expr::with_value(formula_.result_type(r), [&]<class V>(V) {
            return static_cast<double>(expr::value_of<V>(made[i][r]));
          });
          all[r][is_one ? g : static_cast<std::size_t>(groups_[g][i])] = value;
        }
      }
    }
    return all;
  }

 private:
  Shape whole_;
  std::vector<Shape> shapes_;
  expr::Expression formula_;
  std::vector<std::vector<std::int64_t>> groups_;
};

inline std::vector<double> read_any(OpHarness& h, ValueId id) {
  const auto as = [&]<class T>(T) {
    std::vector<double> all;
    for (const T one : h.read<T>(id)) all.push_back(static_cast<double>(one));
    return all;
  };
  switch (h.graph()[id].type) {
    case DType::float32:
      return as(float{});
    case DType::float64:
      return as(double{});
    case DType::int64:
      return as(std::int64_t{});
    case DType::int32:
      return as(std::int32_t{});
    case DType::uint8:
      break;
  }
  return as(std::uint8_t{});
}

template <class T>
DType dtype() {
  return std::is_same_v<T, double>         ? DType::float64
         : std::is_same_v<T, float>        ? DType::float32
         : std::is_same_v<T, std::int32_t> ? DType::int32
                                           : DType::int64;
}

class ReduceCase {
 public:
  explicit ReduceCase(unsigned seed) : random_(seed), harness_(seed) {}

  template <class T>
  void run(const std::string& text, double tolerance) {
    draw();
    const std::size_t count = expr::operand_count(text);
    std::vector<Shape> shapes;
    std::vector<std::vector<T>> values;
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < count; ++i) {
      shapes.push_back(i == 0 ? whole_ : part());
      const bool can_have_halo = shapes[i].rank() == 4 && shapes[i].elements() > 0;
      operands.push_back(harness_.declare("x" + std::to_string(number_++), dtype<T>(), shapes[i],
                                          can_have_halo && pick(4) == 0 ? 1 : 0));
      values.emplace_back();
      for (std::int64_t k = 0; k < shapes[i].elements(); ++k) {
        if constexpr (std::is_floating_point_v<T>) {
          values[i].push_back(std::uniform_real_distribution<T>(T(0.5), 2)(random_));
        } else {
          values[i].push_back(static_cast<T>(pick(9) - 4));
        }
      }
      harness_.write(operands[i], values[i]);
    }
    const std::int64_t keep = pick(2);
    SCOPED_TRACE(text + " of " + to_string(whole_) + " along " + graph::to_string(axes_));
    const auto results = harness_.op("reduce", operands, formula(text, axes_, keep));
    const ReduceReference<T> reference(text, whole_, axes_, shapes);
    const auto varies = reference.formula().varying();
    std::vector<int> halos;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Shape shape = harness_.graph()[results[r]].shape;
      EXPECT_EQ(shape, varies[reference.formula().results()[r]] ? whole_ : grouped(keep));
      halos.push_back(shape.rank() == 4 && shape.elements() > 0 && pick(4) == 0 ? 2 : 0);
      harness_.set_halo(results[r], halos.back());
    }
    ASSERT_EQ(harness_.run("tiles"), runtime::StatusWord::ok);
    const auto expected = reference.results(values);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const auto found = read_any(harness_, results[r]);
      ASSERT_EQ(found.size(), expected[r].size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[r][i], tolerance * (1 + std::fabs(expected[r][i])))
            << "result " << r << ", element " << i;
      }
    }
  }

  /// Central differences of all operands.
  void check_gradient(const std::string& text) {
    draw(200);
    const std::size_t count = expr::operand_count(text);
    std::vector<Shape> shapes;
    std::vector<std::vector<double>> values, seeds;
    std::vector<ValueId> operands, gradients;
    std::uniform_real_distribution<double> number(0.5, 2);
    const auto declare = [&](const Shape& like) {
      const Shape shape = like;  // which may be a value's, and move with it
      const auto id = harness_.declare("x" + std::to_string(number_++), DType::float64, shape);
      std::vector<double> drawn(static_cast<std::size_t>(shape.elements()));
      for (double& one : drawn) one = number(random_);
      harness_.write(id, drawn);
      return std::pair{id, drawn};
    };
    for (std::size_t i = 0; i < count; ++i) {
      shapes.push_back(i == 0 ? whole_ : part());
      const auto [id, drawn] = declare(shapes[i]);
      operands.push_back(id);
      values.push_back(drawn);
    }
    SCOPED_TRACE(text + " of " + to_string(whole_) + " along " + graph::to_string(axes_));
    const auto results = harness_.op("reduce", operands, formula(text, axes_, pick(2)));
    ASSERT_EQ(harness_.run("tiles"), runtime::StatusWord::ok);
    for (const ValueId result : results) {
      const auto [id, drawn] = declare(harness_.graph()[result].shape);
      gradients.push_back(id);
      seeds.push_back(drawn);
    }
    const ReduceReference<double> reference(text, whole_, axes_, shapes);
    const auto found = harness_.gradient(gradients, std::vector<bool>(count, true));
    const auto total = [&] {
      double sum = 0;
      const auto made = reference.results(values);
      for (std::size_t r = 0; r < made.size(); ++r) {
        for (std::size_t i = 0; i < made[r].size(); ++i) sum += made[r][i] * seeds[r][i];
      }
      return sum;
    };
    for (std::size_t k = 0; k < count; ++k) {
      if (whole_.elements() == 0) continue;
      ASSERT_EQ(harness_.graph()[found[k]].shape, shapes[k]);
      const auto gradient = harness_.read<double>(found[k]);
      for (std::size_t tries = 0; tries < 5; ++tries) {
        const std::size_t i = static_cast<std::size_t>(pick(static_cast<int>(gradient.size())));
        const double before = values[k][i], step = 1e-5;
        values[k][i] = before + step;
        const double more = total();
        values[k][i] = before - step;
        const double slope = (more - total()) / (2 * step);
        values[k][i] = before;
        ASSERT_NEAR(gradient[i], slope, 1e-5 * (1 + std::fabs(slope)))
            << "operand " << k << ", element " << i;
      }
    }
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  void draw(std::int64_t most = 20000) {
    constexpr std::int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 63, 100, 130, 513, 1300};
    List dims;
    std::int64_t elements = 1;
    for (int i = 1 + pick(5); i > 0; --i) {
      const std::int64_t size = sizes[pick(static_cast<int>(std::size(sizes)))];
      dims.push_back(elements * size > most ? 1 : size);
      elements *= dims.back();
    }
    whole_ = Shape(dims);
    axes_.clear();
    while (axes_.empty()) {
      for (int axis = 0; axis < whole_.rank(); ++axis) {
        if (pick(2) == 0) axes_.push_back(axis);
      }
    }
  }

  Shape part() {
    List dims(whole_.begin(), whole_.end());
    for (std::int64_t& size : dims) size = pick(2) == 0 ? 1 : size;
    if (pick(3) == 0)
      dims.erase(dims.begin(), dims.begin() + pick(static_cast<int>(dims.size()) + 1));
    return Shape(dims);
  }

  Shape grouped(std::int64_t keep) const {
    List dims;
    for (int axis = 0; axis < whole_.rank(); ++axis) {
      const bool is_reduced = std::ranges::find(axes_, axis) != axes_.end();
      if (!is_reduced) dims.push_back(whole_[axis]);
      if (is_reduced && keep == 1) dims.push_back(1);
    }
    return Shape(dims);
  }

  std::mt19937 random_;
  OpHarness harness_;
  Shape whole_;
  List axes_;
  int number_ = 0;
};

}  // namespace arenite::codelets::testing
