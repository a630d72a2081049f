// What instructions of PTX compute.
#include <gtest/gtest.h>

#include "tests/ptx/operations.hpp"
#include "tests/ptx/warp.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ptx {
namespace {

/// What an instruction gives of registers' values, in all lanes of which every second is active.
template <class D, class... S>
D computed(const std::string& name, S... values) {
  const Operation* const operation = find_operation(name);
  if (operation == nullptr) throw std::runtime_error(name);
  EXPECT_EQ(operation->sources, sizeof...(S));
  constexpr std::size_t slot = 256;
  alignas(64) std::byte file[6 * slot]{};
  Warp warp;
  warp.file = file;
  warp.active = 0x55555555;
  Instruction one;
  one.to = 5 * slot;
  std::size_t i = 0;
  const auto put = [&]<class T>(T value) {
    one.from[i] = static_cast<Register>(i * slot);
    if constexpr (std::is_same_v<T, bool>) {
      const Mask mask = value ? all_lanes : 0;
      std::memcpy(file + one.from[i], &mask, sizeof(mask));
    } else {
      std::fill_n(warp.lanes<T>(one.from[i]), lanes, value);
    }
    ++i;
  };
  (put(values), ...);
  operation->function(warp, one);
  if constexpr (std::is_same_v<D, bool>) {
    EXPECT_EQ(warp.predicate(one.to) & ~warp.active, 0U);
    return warp.predicate(one.to) == warp.active;
  } else {
    EXPECT_EQ(warp.lanes<D>(one.to)[1], D{}) << "of a lane that is not active";
    return warp.lanes<D>(one.to)[30];
  }
}

TEST(PtxOperations, Compute) {
  using u32 = std::uint32_t;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(computed<std::int32_t>("mul.hi.s32", -3, 1 << 30), -1);
  EXPECT_EQ(computed<std::int64_t>("mul.wide.s32", -3, 1 << 30), -3LL * (1 << 30));
  EXPECT_EQ(computed<std::int32_t>("shr.s32", -8, u32{40}), -1);
  EXPECT_EQ(computed<u32>("shl.b32", u32{8}, u32{32}), 0U);
  EXPECT_EQ(computed<std::int32_t>("div.s32", std::numeric_limits<int>::min(), -1),
            std::numeric_limits<int>::min());
  EXPECT_EQ(computed<u32>("bfi.b32", u32{0xff}, u32{0}, u32{4}, u32{6}), 0x3f0U);
  EXPECT_EQ(computed<std::uint64_t>("pack.b64", u32{1}, u32{2}), 0x200000001U);
  EXPECT_EQ(computed<u32>("high.b64", std::uint64_t{0x200000001}), 2U);
  EXPECT_EQ(computed<std::int64_t>("cvt.s64.s32", -5), -5);
  EXPECT_EQ(computed<float>("cvt.sat.f32.f32", nan), 0.0f);
  EXPECT_EQ(computed<float>("cvt.sat.f32.f32", 1.5f), 1.0f);
  EXPECT_EQ(computed<float>("fma.rn.f32", 1.0f + 0x1p-12f, 1.0f - 0x1p-12f, -1.0f), -0x1p-24f);
  EXPECT_EQ(computed<float>("fma.rm.f32", 1.0f, 0x1p-30f, 1.0f), 1.0f);
  EXPECT_EQ(computed<float>("fma.rm.f32", 1.0f, -0x1p-30f, 1.0f), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(computed<float>("ex2.approx.ftz.f32", 3.0f), 8.0f);
  EXPECT_EQ(computed<float>("ex2.approx.ftz.f32", -127.0f), 0.0f);
  EXPECT_EQ(computed<u32>("bfi.b32", u32{0xff}, u32{0}, u32{0x104}, u32{0x206}), 0x3f0U);
  EXPECT_EQ(computed<std::uint64_t>("bfi.b64", std::uint64_t{3}, std::uint64_t{0}, u32{40}, u32{2}),
            std::uint64_t{3} << 40);
  EXPECT_EQ(computed<std::int64_t>("mul.hi.s64", std::int64_t{-3}, std::int64_t{1} << 62), -1);
  EXPECT_EQ(computed<std::int32_t>("cvt.rzi.s32.f32", -2.7f), -2);
  EXPECT_EQ(computed<std::int32_t>("cvt.rni.s32.f32", 2.5f), 2);
  EXPECT_EQ(computed<std::int32_t>("cvt.rzi.s32.f64", 3e9), std::numeric_limits<int>::max());
  EXPECT_EQ(computed<std::int64_t>("cvt.rzi.s64.f32", -1e30f),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(computed<u32>("cvt.rzi.u32.f32", nan), 0U);
  EXPECT_EQ(computed<u32>("cvt.rzi.u32.f32", 4294967040.0f), 4294967040U);
  EXPECT_EQ(computed<double>("cvt.rmi.f64.f64", -0.5), -1.0);
  EXPECT_EQ(computed<float>("copysign.f32", -1.0f, 2.0f), -2.0f);
  EXPECT_EQ(computed<float>("add.rz.f32", 1.0f, 0x1.8p-24f), 1.0f);
  EXPECT_EQ(computed<float>("add.rz.f32", 1.0f, -0x1p-30f), std::nextafter(1.0f, 0.0f));
  const double third = computed<double>("rcp.approx.ftz.f64", 3.0);
  EXPECT_NEAR(third, 1.0 / 3, 1e-6);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(third) & 0xffffffffU, 0U);
  EXPECT_EQ(computed<double>("rcp.approx.ftz.f64", 1e-310),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(computed<float>("max.f32", nan, 1.0f), 1.0f);
  for (const auto& [a, b] : {std::pair{0.0f, -0.0f}, {-0.0f, 0.0f}}) {
    EXPECT_FALSE(std::signbit(computed<float>("max.f32", a, b)));
    EXPECT_TRUE(std::signbit(computed<float>("min.f32", a, b)));
  }
  EXPECT_FALSE(computed<bool>("setp.ne.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.neu.f32", nan, 1.0f));
  EXPECT_FALSE(computed<bool>("setp.le.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.leu.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.lt.s32", -1, 1));
  EXPECT_FALSE(computed<bool>("setp.lt.u32", u32{0} - 1, u32{1}));
  EXPECT_EQ(computed<float>("selp.f32", 1.0f, 2.0f, false), 2.0f);
  EXPECT_TRUE(computed<bool>("xor.pred", true, false));
}

}  // namespace
}  // namespace ptx
