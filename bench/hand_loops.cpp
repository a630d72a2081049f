#include "bench/hand_loops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/hand_loops.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "src/expr/simd/math-inl.hpp"
#include "src/expr/simd/philox-inl.hpp"

#include "src/expr/simd/isa.hpp"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace arenite::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = expr::HWY_NAMESPACE::math;
using Tag = math::Tag<float>;
using Vector = hn::Vec<Tag>;
constexpr Tag d;
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag()));

HWY_INLINE Vector load(const float* from) { return hn::LoadU(d, from); }
HWY_INLINE void store(Vector x, float* to) { hn::StoreU(x, d, to); }
HWY_INLINE Vector set(float x) { return hn::Set(d, x); }
HWY_INLINE Vector relu_of(Vector x) { return hn::IfThenElse(hn::Le(x, set(0)), set(0), x); }

#define ARENITE_BY_HAND(NAME)                                                                 \
  void NAME(const float* const* in, std::int64_t rows, [[maybe_unused]] std::int64_t columns, \
            float* const* out)

ARENITE_BY_HAND(add) {
  for (std::int64_t i = 0; i < rows * columns; i += lanes)
    store(hn::Add(load(in[0] + i), load(in[1] + i)), out[0] + i);
}

ARENITE_BY_HAND(relu) {
  for (std::int64_t i = 0; i < rows * columns; i += lanes)
    store(relu_of(load(in[0] + i)), out[0] + i);
}

ARENITE_BY_HAND(relu_grad) {
  for (std::int64_t i = 0; i < rows * columns; i += lanes)
    store(hn::IfThenElse(hn::Le(load(in[1] + i), set(0)), set(0), load(in[0] + i)), out[0] + i);
}

ARENITE_BY_HAND(bias_gelu) {
  const Vector root = set(0.70710678118654752F), half = set(0.5F), one = set(1);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * columns;
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector x = hn::Add(load(in[0] + row + i), load(in[1] + i));
      const Vector both = hn::Add(math::erf(hn::Mul(x, root)), one);
      store(hn::Mul(hn::Mul(half, x), both), out[0] + row + i);
    }
  }
}

ARENITE_BY_HAND(bias_gelu_grad) {
  const Vector root = set(0.70710678118654752F), half = set(0.5F), one = set(1),
               slope_of_erf = set(1.1283791670955126F);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * columns;
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector slope = load(in[0] + row + i),
                   x = hn::Add(load(in[1] + row + i), load(in[2] + i)), a = hn::Mul(x, root);
      const Vector left = hn::Mul(hn::Mul(hn::Mul(math::exp(hn::Neg(hn::Mul(a, a))), slope_of_erf),
                                          hn::Mul(hn::Mul(x, half), slope)),
                                  root);
      store(hn::Add(left, hn::Mul(hn::Mul(slope, hn::Add(math::erf(a), one)), half)),
            out[0] + row + i);
    }
  }
}

ARENITE_BY_HAND(normalize_relu) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * columns;
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector x = hn::Sub(load(in[0] + row + i), load(in[1] + i));
      store(relu_of(hn::MulAdd(hn::Mul(x, load(in[2] + i)), load(in[3] + i), load(in[4] + i))),
            out[0] + row + i);
    }
  }
}

ARENITE_BY_HAND(sgd_momentum) {
  const Vector rate = set(in[2][0]), momentum = set(0.9F);
  for (std::int64_t i = 0; i < rows * columns; i += lanes) {
    const Vector v = hn::MulAdd(momentum, load(in[3] + i), load(in[1] + i));
    store(hn::NegMulAdd(rate, v, load(in[0] + i)), out[0] + i);
    store(v, out[1] + i);
  }
}

ARENITE_BY_HAND(adam) {
  const Vector rate = set(in[2][0] * in[5][0]), unbiased = set(in[6][0]), beta1 = set(0.9F),
               rest1 = set(0.1F), beta2 = set(0.999F), rest2 = set(0.001F), eps = set(1e-8F);
  for (std::int64_t i = 0; i < rows * columns; i += lanes) {
    const Vector g = load(in[1] + i);
    const Vector m = hn::Add(hn::Mul(beta1, load(in[3] + i)), hn::Mul(rest1, g));
    const Vector s = hn::Add(hn::Mul(beta2, load(in[4] + i)), hn::Mul(rest2, hn::Mul(g, g)));
    const Vector step = hn::Div(m, hn::MulAdd(hn::Sqrt(s), unbiased, eps));
    store(hn::NegMulAdd(rate, step, load(in[0] + i)), out[0] + i);
    store(m, out[1] + i);
    store(s, out[2] + i);
  }
}

/// Of the sequence of key 7.
ARENITE_BY_HAND(dropout) {
  constexpr auto block = static_cast<std::int64_t>(expr::HWY_NAMESPACE::philox_block);
  const hn::RebindToUnsigned<Tag> bits;
  const hn::RebindToSigned<Tag> numbers;
  for (std::int64_t i = 0; i < rows * columns; i += block) {
    std::uint32_t words[block];
    expr::HWY_NAMESPACE::philox(static_cast<std::uint64_t>(i), 7, words);
    for (std::int64_t j = 0; j < block; j += lanes) {
      const auto word = hn::BitCast(numbers, hn::ShiftRight<8>(hn::LoadU(bits, words + j)));
      const Vector drawn = hn::Mul(hn::ConvertTo(d, word), set(0x1p-24F)),
                   kept = hn::Mul(load(in[0] + i + j), set(1.1111112F));
      store(hn::IfThenElse(hn::Lt(drawn, set(0.1F)), set(0), kept), out[0] + i + j);
    }
  }
}

/// In double, as all sums are.
struct Total {
  using Wide = math::Tag<double>;
  hn::Vec<Wide> low, high;

  HWY_INLINE Total() : low(hn::Zero(Wide())), high(hn::Zero(Wide())) {}
  HWY_INLINE void add(Vector x) {
#if HWY_TARGET == HWY_SCALAR
    low = hn::Add(low, hn::PromoteTo(Wide(), x));
#else
    low = hn::Add(low, hn::PromoteTo(Wide(), hn::LowerHalf(x)));
    high = hn::Add(high, hn::PromoteTo(Wide(), hn::UpperHalf(hn::Half<Tag>(), x)));
#endif
  }
  HWY_INLINE float all() const {
    return static_cast<float>(hn::GetLane(hn::SumOfLanes(Wide(), hn::Add(low, high))));
  }
};

ARENITE_BY_HAND(softmax) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* x = in[0] + r * columns;
    float* y = out[0] + r * columns;
    Vector most = load(x);
    Total total;
    for (std::int64_t i = lanes; i < columns; i += lanes) most = hn::Max(most, load(x + i));
    most = hn::MaxOfLanes(d, most);
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector e = math::exp(hn::Sub(load(x + i), most));
      store(e, y + i);
      total.add(e);
    }
    const Vector scale = hn::Div(set(1), set(total.all()));
    for (std::int64_t i = 0; i < columns; i += lanes) store(hn::Mul(load(y + i), scale), y + i);
  }
}

ARENITE_BY_HAND(layer_norm) {
  const Vector share = set(1 / static_cast<float>(columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* x = in[0] + r * columns;
    float* y = out[0] + r * columns;
    Total total, squares;
    for (std::int64_t i = 0; i < columns; i += lanes) total.add(load(x + i));
    const Vector mean = hn::Mul(set(total.all()), share);
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector distance = hn::Sub(load(x + i), mean);
      squares.add(hn::Mul(distance, distance));
    }
    const Vector variance = hn::MulAdd(set(squares.all()), share, set(1e-5F)),
                 scale = hn::Div(set(1), hn::Sqrt(variance));
    for (std::int64_t i = 0; i < columns; i += lanes) {
      const Vector distance = hn::Mul(hn::Sub(load(x + i), mean), scale);
      store(hn::MulAdd(distance, load(in[1] + i), load(in[2] + i)), y + i);
    }
  }
}

}  // namespace

HandLoop hand_loop(std::string_view formula) {
  struct Known {
    std::string_view name;
    HandLoop loop;
  };
#define ARENITE_KNOWN(NAME) \
  { #NAME, NAME }
  static constexpr Known all[] = {
      ARENITE_KNOWN(adam),           ARENITE_KNOWN(add),     ARENITE_KNOWN(bias_gelu),
      ARENITE_KNOWN(bias_gelu_grad), ARENITE_KNOWN(dropout), ARENITE_KNOWN(layer_norm),
      ARENITE_KNOWN(normalize_relu), ARENITE_KNOWN(relu),    ARENITE_KNOWN(relu_grad),
      ARENITE_KNOWN(sgd_momentum),   ARENITE_KNOWN(softmax)};
  for (const Known& one : all) {
    if (one.name == formula) return one.loop;
  }
  return nullptr;
}

}  // namespace arenite::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::bench {
HWY_EXPORT(hand_loop);

HandLoop by_hand(std::string_view formula) {
  expr::apply_isa();
  return HWY_DYNAMIC_DISPATCH(hand_loop)(formula);
}

}  // namespace arenite::bench
#endif
