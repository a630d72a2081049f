#include "src/expr/simd/isa.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/isa_test.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
const char* compiled_for() {
  return HWY_TARGET == HWY_AVX3 ? "avx512" : HWY_TARGET == HWY_AVX2 ? "avx2" : "baseline";
}
}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::expr {
namespace {

HWY_EXPORT(compiled_for);

/// In a process of its own, as the choice is made once: prints the name, or what an error says.
[[noreturn]] void print_isa(const char* word) {
  setenv("ARENITE_ISA", word, 1);
  try {
    const std::string first(isa());
    apply_isa();
    const bool is_same = first == isa() && first == HWY_DYNAMIC_DISPATCH(compiled_for)();
    std::fprintf(stderr, "in use: %s\n", is_same ? first.c_str() : "another");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::exit(0);
}

void expect(const char* word, const char* pattern) {
  EXPECT_EXIT(print_isa(word), testing::ExitedWithCode(0), pattern);
}

TEST(IsaDeathTest, TakesWhatTheEnvironmentNames) {
  expect("baseline", "in use: baseline");
  expect("", "in use: (avx512|avx2|baseline)");
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    expect("avx2", "in use: avx2");
    if (!__builtin_cpu_supports("avx512f"))
      expect("avx512", "ARENITE_ISA: avx512, which this machine lacks; .*: avx2, baseline");
  }
#endif
}

TEST(IsaDeathTest, RefusesOtherWords) {
  expect("sse9", "variable ARENITE_ISA: 'sse9'; expected avx512, avx2 or baseline");
  expect("AVX2", "'AVX2'");
}

}  // namespace
}  // namespace arenite::expr
#endif
