// Functions of float32 and float64, by Highway.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/float_loops.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "src/expr/simd/functions-inl.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "src/expr/simd/isa.hpp"
#include "src/expr/simd/loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void store(Vector<T> x, T* target) {
  hn::StoreU(x, Tag<T>(), target);
}
/// A mask as int32.
template <class T>
HWY_INLINE void store(hn::Mask<Tag<T>> mask, std::int32_t* target) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> narrow;
  if constexpr (sizeof(T) == 4) {
    hn::StoreU(hn::BitCast(narrow, hn::VecFromMask(d, mask)), narrow, target);
  } else {
    const auto minus_one = hn::IfThenElseZero(mask, hn::Set(d, -1));
    hn::StoreU(hn::DemoteTo(narrow, minus_one), narrow, target);
  }
}

template <class T>
HWY_INLINE hn::Mask<Tag<T>> load_mask(const std::int32_t* source) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> narrow;
  const auto bits = hn::LoadU(narrow, source);
  if constexpr (sizeof(T) == 4) {
    return hn::MaskFromVec(hn::BitCast(d, bits));
  } else {
    const hn::RebindToSigned<Tag<T>> wide;
    return hn::MaskFromVec(hn::BitCast(d, hn::PromoteTo(wide, bits)));
  }
}

/// Bit i of `splats`: source i is the same everywhere.
template <class T, class F, unsigned splats>
struct Applied {
  Vector<T> held[4];

  HWY_INLINE explicit Applied(const T* const* sources) {
    for (int i = 0; i < F::sources; ++i) {
      if (splats >> i & 1) held[i] = hn::LoadU(Tag<T>(), sources[i]);
    }
  }

  HWY_INLINE auto at(const T* const* sources, std::size_t place) const {
    Vector<T> x[4];
    for (int i = 0; i < F::sources; ++i)
      x[i] = splats >> i & 1 ? held[i] : hn::LoadU(Tag<T>(), sources[i] + place);
    return F::of(Tag<T>(), x);
  }
};

/// The elements that fill no vector are copied: nothing outside is touched.
template <class T, class F, unsigned splats>
void loop(void* target, const void* const* sources, std::size_t count) {
  using Made = decltype(F::of(Tag<T>(), static_cast<const Vector<T>*>(nullptr)));
  using Out = std::conditional_t<std::is_same_v<Made, Vector<T>>, T, std::int32_t>;
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  const T* from[4] = {};
  for (int i = 0; i < F::sources; ++i) from[i] = static_cast<const T*>(sources[i]);
  Out* to = static_cast<Out*>(target);
  const Applied<T, F, splats> applied(from);
  std::size_t place = 0;
  for (; place + lanes <= count; place += lanes) store<T>(applied.at(from, place), to + place);
  if (place == count) return;
  const std::size_t left = count - place;
  T rest[4][lanes];
  Out made[lanes];
  const T* at_rest[4] = {};
  for (int i = 0; i < F::sources; ++i) {
    std::memset(rest[i], 0, sizeof rest[i]);
    if (!(splats >> i & 1)) std::memcpy(rest[i], from[i] + place, left * sizeof(T));
    at_rest[i] = rest[i];
  }
  store<T>(applied.at(at_rest, 0), made);
  std::memcpy(to + place, made, left * sizeof(Out));
}

/// Of a mask that is there.
template <class T>
void select_loop(void* target, const void* const* sources, std::size_t count) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  const Tag<T> d;
  const auto* mask = static_cast<const std::int32_t*>(sources[0]);
  const T *yes = static_cast<const T*>(sources[1]), *no = static_cast<const T*>(sources[2]);
  T* to = static_cast<T*>(target);
  std::size_t place = 0;
  for (; place + lanes <= count; place += lanes) {
    store<T>(hn::IfThenElse(load_mask<T>(mask + place), hn::LoadU(d, yes + place),
                            hn::LoadU(d, no + place)),
             to + place);
  }
  for (; place < count; ++place) to[place] = mask[place] != 0 ? yes[place] : no[place];
}

/// Splats of float64 are read like tiles.
template <class T, class F, unsigned... splats>
Loop by_splats(unsigned which, std::integer_sequence<unsigned, splats...>) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::array loops = {&loop<T, F, splats>...};
    return loops[which];
  } else {
    return &loop<T, F, 0>;
  }
}

template <class T, class F>
Loop with(const Instruction& instruction) {
  // All of them at once: it is done once a run, on tiles.
  constexpr unsigned combinations = 1u << F::sources;
  return by_splats<T, F>(instruction.splats, std::make_integer_sequence<unsigned, combinations>());
}

template <class T>
Loop find_select(const Instruction& instruction) {
  switch (instruction.comparison) {
    case Function::equal:
      return with<T, SelectBy<Equal>>(instruction);
    case Function::not_equal:
      return with<T, SelectBy<NotEqual>>(instruction);
    case Function::less:
      return with<T, SelectBy<Less>>(instruction);
    case Function::less_equal:
      return with<T, SelectBy<LessEqual>>(instruction);
    default:
      return &select_loop<T>;
  }
}

template <class T>
Loop find(const Instruction& instruction) {
  switch (instruction.function) {
#define ARENITE_CASE(FUNCTION, NAME) \
  case Function::FUNCTION:           \
    return with<T, NAME>(instruction);
    ARENITE_CASE(operand, Copy)
    ARENITE_CASE(negate, Negate)
    ARENITE_CASE(abs, Abs)
    ARENITE_CASE(floor, Floor)
    ARENITE_CASE(round, Round)
    ARENITE_CASE(sqrt, Sqrt)
    ARENITE_CASE(rsqrt, Rsqrt)
    ARENITE_CASE(exp, Exp)
    ARENITE_CASE(expm1, Expm1)
    ARENITE_CASE(log, Log)
    ARENITE_CASE(log1p, Log1p)
    ARENITE_CASE(sin, Sin)
    ARENITE_CASE(cos, Cos)
    ARENITE_CASE(tanh, Tanh)
    ARENITE_CASE(erf, Erf)
    ARENITE_CASE(sigmoid, Sigmoid)
    ARENITE_CASE(add, Add)
    ARENITE_CASE(subtract, Subtract)
    ARENITE_CASE(multiply, Multiply)
    ARENITE_CASE(divide, Divide)
    ARENITE_CASE(min, Min)
    ARENITE_CASE(max, Max)
    ARENITE_CASE(pow, Pow)
    ARENITE_CASE(equal, Equal)
    ARENITE_CASE(not_equal, NotEqual)
    ARENITE_CASE(less, Less)
    ARENITE_CASE(less_equal, LessEqual)
    ARENITE_CASE(fma, Fma)
#undef ARENITE_CASE
    case Function::bfloat16:
      if constexpr (std::is_same_v<T, float>) return with<T, Bfloat16>(instruction);
      return nullptr;
    case Function::select:
      return find_select<T>(instruction);
    default:
      return nullptr;
  }
}

}  // namespace

Loop find_float(const Instruction& instruction) {
  if (instruction.from == Type::float32) return find<float>(instruction);
  return find<double>(instruction);
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::expr {
HWY_EXPORT(find_float);

Loop find_float_loop(const Instruction& instruction) {
  return HWY_DYNAMIC_DISPATCH(find_float)(instruction);
}

}  // namespace arenite::expr
#endif
