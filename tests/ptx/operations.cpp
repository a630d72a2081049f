#include "tests/ptx/operations.hpp"

#include "tests/ptx/warp.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ptx {
namespace {

using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

/// A source of all lanes.
template <class T>
struct Source {
  const T* values;
  Source(const Warp& warp, Register at) : values(warp.lanes<T>(at)) {}
  T operator[](int lane) const { return values[lane]; }
};
template <>
struct Source<bool> {
  Mask mask;
  Source(const Warp& warp, Register at) : mask(warp.predicate(at)) {}
  bool operator[](int lane) const { return ((mask >> lane) & 1) != 0; }
};

/// An F for each lane that is active, of its values.
template <class F, class D, class... S, std::size_t... i>
void each_lane(Warp& warp, const Instruction& one, std::index_sequence<i...>) {
  const std::tuple<Source<S>...> from{Source<S>(warp, one.from[i])...};
  D results[lanes];
  for (int lane = 0; lane < lanes; ++lane) results[lane] = F()(std::get<i>(from)[lane]...);
  if constexpr (std::is_same_v<D, bool>) {
    Mask mask = 0;
    for (int lane = 0; lane < lanes; ++lane) mask |= Mask{results[lane]} << lane;
    warp.set_predicate(one.to, mask);
  } else {
    warp.set(one.to, results);
  }
}

template <class T>
constexpr std::uint8_t bytes_of = std::is_same_v<T, bool> ? 0 : sizeof(T);

template <class F, class D, class... S>
Operation operation(D (*)(S...)) {
  return {[](Warp& warp, const Instruction& one) {
            each_lane<F, D, S...>(warp, one, std::index_sequence_for<S...>());
          },
          bytes_of<D>,
          sizeof...(S),
          {bytes_of<S>...}};
}

class Table {
 public:
  /// `f` is a lambda that captures nothing.
  template <class F>
  void add(const std::string& name, F f) {
    all_.emplace(name, operation<F>(+f));
  }
  const Operation* find(std::string_view name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Operation, std::less<>> all_;
};

/// Rounded down, which expf counts on.
[[gnu::noinline]] f32 fma_down(f32 a, f32 b, f32 c) {
  const int before = std::fegetround();
  std::fesetround(FE_DOWNWARD);
  volatile f32 x = a, y = b, z = c;
  volatile f32 result = std::fma(x, y, z);
  std::fesetround(before);
  return result;
}

/// Rounded towards zero.
[[gnu::noinline]] f32 sum_towards_zero(f32 a, f32 b) {
  const int before = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  volatile f32 x = a, y = b;
  volatile f32 result = x + y;
  std::fesetround(before);
  return result;
}

/// NaN becomes 0, and what is beyond an end the end.
template <class D, class S>
D saturated(S a) {
  constexpr S beyond = static_cast<S>(std::numeric_limits<D>::max() / 2 + 1) * 2;
  if (a != a) return 0;
  if (a >= beyond) return std::numeric_limits<D>::max();
  const bool below = a <= static_cast<S>(std::numeric_limits<D>::min());
  return below ? std::numeric_limits<D>::min() : static_cast<D>(a);
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
                                std::conditional_t<std::is_signed_v<T>, s64, u64>>;

/// Shifts by as much as a value has bits, or more, leave nothing of it.
template <class T>
T shifted_left(T a, u32 by) {
  return by < 8 * sizeof(T) ? static_cast<T>(a << by) : T{0};
}
template <class T>
T shifted_right(T a, u32 by) {
  if (by < 8 * sizeof(T)) return static_cast<T>(a >> by);
  return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
}

template <class T>
T inserted(T bits, T into, u32 at, u32 count) {
  const T ones = count < 8 * sizeof(T) ? (T{1} << count) - 1 : ~T{0}, mask = shifted_left(ones, at);
  return (into & ~mask) | (shifted_left(bits, at) & mask);
}

/// GPUs do not trap.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
  return a / b;
}
template <class T>
T remainder_of(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return a % b;
}

template <class T>
void add_integers(Table& t, const std::string& type) {
  using U = Unsigned<T>;
  t.add("add." + type,
        [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
  t.add("sub." + type,
        [](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
  t.add("mul.lo." + type, [](T a, T b) { return static_cast<T>(u64(a) * u64(b)); });
  t.add("mad.lo." + type, [](T a, T b, T c) { return static_cast<T>(u64(a) * u64(b) + u64(c)); });
  t.add("div." + type, [](T a, T b) { return quotient(a, b); });
  t.add("rem." + type, [](T a, T b) { return remainder_of(a, b); });
  t.add("min." + type, [](T a, T b) { return a < b ? a : b; });
  t.add("max." + type, [](T a, T b) { return a > b ? a : b; });
  t.add("shr." + type, [](T a, u32 by) { return shifted_right(a, by); });
  t.add("neg." + type, [](T a) { return static_cast<T>(U{0} - static_cast<U>(a)); });
  if constexpr (std::is_signed_v<T>) {
    t.add("abs." + type, [](T a) { return a < 0 ? static_cast<T>(U{0} - static_cast<U>(a)) : a; });
  }
  if constexpr (sizeof(T) == 8) {
    using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    t.add("mul.hi." + type, [](T a, T b) { return static_cast<T>((W{a} * W{b}) >> 64); });
  }
  if constexpr (sizeof(T) < 8) {
    using W = Wide<T>;
    t.add("mul.wide." + type, [](T a, T b) { return static_cast<W>(W(a) * W(b)); });
    t.add("mad.wide." + type, [](T a, T b, W c) {
      return static_cast<W>(static_cast<Unsigned<W>>(W(a) * W(b)) + static_cast<Unsigned<W>>(c));
    });
    t.add("mul.hi." + type,
          [](T a, T b) { return static_cast<T>((W(a) * W(b)) >> (8 * sizeof(T))); });
  }
}

/// Comparisons that are false where one side is NaN, or where there is none.
template <class T>
void add_comparisons(Table& t, const std::string& type) {
  t.add("setp.eq." + type, [](T a, T b) { return a == b; });
  t.add("setp.ne." + type, [](T a, T b) { return a != b && a == a && b == b; });
  t.add("setp.lt." + type, [](T a, T b) { return a < b; });
  t.add("setp.le." + type, [](T a, T b) { return a <= b; });
  t.add("setp.gt." + type, [](T a, T b) { return a > b; });
  t.add("setp.ge." + type, [](T a, T b) { return a >= b; });
}

template <class T>
void add_bits(Table& t, const std::string& bits) {
  t.add("and." + bits, [](T a, T b) { return static_cast<T>(a & b); });
  t.add("or." + bits, [](T a, T b) { return static_cast<T>(a | b); });
  t.add("xor." + bits, [](T a, T b) { return static_cast<T>(a ^ b); });
  t.add("not." + bits, [](T a) { return static_cast<T>(~a); });
  t.add("shl." + bits, [](T a, u32 by) { return shifted_left(a, by); });
  t.add("shr." + bits, [](T a, u32 by) { return shifted_right(a, by); });
  t.add("setp.eq." + bits, [](T a, T b) { return a == b; });
  t.add("setp.ne." + bits, [](T a, T b) { return a != b; });
}

template <class T>
void add_moves(Table& t, const std::string& type) {
  t.add("mov." + type, [](T a) { return a; });
  t.add("selp." + type, [](T a, T b, bool first) { return first ? a : b; });
}

template <class T>
void add_floats(Table& t, const std::string& type) {
  for (const std::string rounding : {"", "rn."}) {
    t.add("add." + rounding + type, [](T a, T b) { return a + b; });
    t.add("sub." + rounding + type, [](T a, T b) { return a - b; });
    t.add("mul." + rounding + type, [](T a, T b) { return a * b; });
  }
  t.add("fma.rn." + type, [](T a, T b, T c) { return std::fma(a, b, c); });
  t.add("div.rn." + type, [](T a, T b) { return a / b; });
  t.add("rcp.rn." + type, [](T a) { return T{1} / a; });
  t.add("sqrt.rn." + type, [](T a) { return std::sqrt(a); });
  t.add("neg." + type, [](T a) { return -a; });
  t.add("abs." + type, [](T a) { return std::fabs(a); });
  t.add("copysign." + type, [](T sign, T a) { return std::copysign(a, sign); });
  const std::string both = type + "." + type;
  t.add("cvt.rni." + both, [](T a) { return std::nearbyint(a); });
  t.add("cvt.rzi." + both, [](T a) { return std::trunc(a); });
  t.add("cvt.rmi." + both, [](T a) { return std::floor(a); });
  t.add("cvt.rpi." + both, [](T a) { return std::ceil(a); });
  t.add("cvt.rni.s32." + type, [](T a) { return saturated<s32>(std::nearbyint(a)); });
  t.add("cvt.rzi.s32." + type, [](T a) { return saturated<s32>(a); });
  t.add("cvt.rzi.u32." + type, [](T a) { return saturated<u32>(a); });
  t.add("cvt.rzi.s64." + type, [](T a) { return saturated<s64>(a); });
  // The one that is a number, where one is; -0 is less than +0.
  t.add("min." + type,
        [](T a, T b) { return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b); });
  t.add("max." + type,
        [](T a, T b) { return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b); });
  add_comparisons<T>(t, type);
  // Those that are true where one side is NaN.
  t.add("setp.equ." + type, [](T a, T b) { return a == b || a != a || b != b; });
  t.add("setp.neu." + type, [](T a, T b) { return a != b; });
  t.add("setp.ltu." + type, [](T a, T b) { return !(a >= b); });
  t.add("setp.leu." + type, [](T a, T b) { return !(a > b); });
  t.add("setp.gtu." + type, [](T a, T b) { return !(a <= b); });
  t.add("setp.geu." + type, [](T a, T b) { return !(a < b); });
  t.add("setp.num." + type, [](T a, T b) { return a == a && b == b; });
  t.add("setp.nan." + type, [](T a, T b) { return a != a || b != b; });
}

template <class D, class S>
void convert(Table& t, const std::string& to_from) {
  t.add("cvt." + to_from, [](S a) { return static_cast<D>(a); });
}

void add_conversions(Table& t) {
  convert<u16, u32>(t, "u16.u32");
  convert<u16, u64>(t, "u16.u64");
  convert<u32, u16>(t, "u32.u16");
  convert<u32, u64>(t, "u32.u64");
  convert<u64, u16>(t, "u64.u16");
  convert<u64, u32>(t, "u64.u32");
  convert<s32, s16>(t, "s32.s16");
  convert<s64, s16>(t, "s64.s16");
  convert<s64, s32>(t, "s64.s32");
  convert<f64, f32>(t, "f64.f32");
  convert<f32, f64>(t, "rn.f32.f64");
  convert<f32, u16>(t, "rn.f32.u16");
  convert<f32, s16>(t, "rn.f32.s16");
  convert<f32, u32>(t, "rn.f32.u32");
  convert<f32, s32>(t, "rn.f32.s32");
  convert<f32, s64>(t, "rn.f32.s64");
  convert<f32, u64>(t, "rn.f32.u64");
  convert<f64, u16>(t, "rn.f64.u16");
  convert<f64, s16>(t, "rn.f64.s16");
  convert<f64, u32>(t, "rn.f64.u32");
  convert<f64, s32>(t, "rn.f64.s32");
  convert<f64, s64>(t, "rn.f64.s64");
  convert<f64, u64>(t, "rn.f64.u64");
  // NaN becomes 0.
  t.add("cvt.sat.f32.f32", [](f32 a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; });
}

Table make_table() {
  Table t;
  add_integers<s16>(t, "s16");
  add_integers<s32>(t, "s32");
  add_integers<s64>(t, "s64");
  add_integers<u16>(t, "u16");
  add_integers<u32>(t, "u32");
  add_integers<u64>(t, "u64");
  add_comparisons<s16>(t, "s16");
  add_comparisons<s32>(t, "s32");
  add_comparisons<s64>(t, "s64");
  add_comparisons<u16>(t, "u16");
  add_comparisons<u32>(t, "u32");
  add_comparisons<u64>(t, "u64");
  add_bits<u16>(t, "b16");
  add_bits<u32>(t, "b32");
  add_bits<u64>(t, "b64");
  for (const char* type : {"b16", "u16", "s16"}) add_moves<u16>(t, type);
  for (const char* type : {"b32", "u32", "s32"}) add_moves<u32>(t, type);
  for (const char* type : {"b64", "u64", "s64"}) add_moves<u64>(t, type);
  add_moves<f32>(t, "f32");
  add_moves<f64>(t, "f64");
  add_floats<f32>(t, "f32");
  add_floats<f64>(t, "f64");
  add_conversions(t);
  t.add("mov.pred", [](bool a) { return a; });
  t.add("not.pred", [](bool a) { return !a; });
  t.add("and.pred", [](bool a, bool b) { return a && b; });
  t.add("or.pred", [](bool a, bool b) { return a || b; });
  t.add("xor.pred", [](bool a, bool b) { return a != b; });
  t.add("fma.rm.f32", [](f32 a, f32 b, f32 c) { return fma_down(a, b, c); });
  t.add("add.rz.f32", [](f32 a, f32 b) { return sum_towards_zero(a, b); });
  t.add("bfi.b32", [](u32 bits, u32 into, u32 at, u32 count) {
    return inserted(bits, into, at & 0xff, count & 0xff);
  });
  t.add("bfi.b64", [](u64 bits, u64 into, u32 at, u32 count) {
    return inserted(bits, into, at & 0xff, count & 0xff);
  });
  // mov.b64 between a register and two.
  t.add("pack.b64", [](u32 low, u32 high) { return u64{high} << 32 | low; });
  t.add("low.b64", [](u64 a) { return static_cast<u32>(a); });
  t.add("high.b64", [](u64 a) { return static_cast<u32>(a >> 32); });
  // GPUs err by 2 units in the last place, this by less; subnormal values are zero.
  t.add("ex2.approx.ftz.f32", [](f32 a) {
    const f32 power = std::exp2(a);
    return power < std::numeric_limits<f32>::min() ? 0.0f : power;
  });
  t.add("ex2.approx.f32", [](f32 a) { return std::exp2(a); });
  t.add("rcp.approx.ftz.f32", [](f32 a) {
    const auto flushed = [](f32 value) {
      return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
    };
    return flushed(1 / flushed(a));
  });
  // From the upper half of a value to the upper half of one.
  t.add("rcp.approx.ftz.f64", [](f64 a) {
    const auto upper = [](f64 value) {
      if (std::fpclassify(value) == FP_SUBNORMAL) return std::copysign(0.0, value);
      return std::bit_cast<f64>(std::bit_cast<u64>(value) & ~u64{0xffffffff});
    };
    return upper(1 / upper(a));
  });
  // The global space is all of memory but a window, where a thread's local memory is.
  constexpr u64 local_window = u64{1} << 56;
  t.add("cvta.to.global.u64", [](u64 a) { return a; });
  t.add("cvta.local.u64", [](u64 a) { return a + local_window; });
  t.add("cvta.to.local.u64", [](u64 a) { return a - local_window; });
  return t;
}

}  // namespace

const Operation* find_operation(std::string_view name) {
  static const Table table = make_table();
  return table.find(name);
}

}  // namespace ptx
