#include "src/cli/doctor/checks.hpp"

#include "codelets/instruction_set.hpp"
#include "codelets/xsmm.hpp"

#include <libxsmm.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace arenite::cli::doctor {
namespace {

constexpr const char* rebuild = "build it on this machine, or anywhere with -DARENITE_NATIVE=OFF";

#if defined(__x86_64__)
constexpr bool known_processor = true;

/// Those of codelets::kernel_instructions() that this CPU has, and its system lets programs use.
std::vector<std::string_view> instructions_here() {
  std::vector<std::string_view> all;
// The builtin takes literals only.
#define ARENITE_ASK(name) \
  if (__builtin_cpu_supports(name)) all.emplace_back(name)
  ARENITE_ASK("sse4.2");
  ARENITE_ASK("popcnt");
  ARENITE_ASK("avx");
  ARENITE_ASK("avx2");
  ARENITE_ASK("fma");
  ARENITE_ASK("bmi");
  ARENITE_ASK("bmi2");
  ARENITE_ASK("avx512f");
  ARENITE_ASK("avx512cd");
  ARENITE_ASK("avx512bw");
  ARENITE_ASK("avx512dq");
  ARENITE_ASK("avx512vl");
  ARENITE_ASK("avx512ifma");
  ARENITE_ASK("avx512vbmi");
  ARENITE_ASK("avx512vbmi2");
  ARENITE_ASK("avx512vnni");
  ARENITE_ASK("avx512bitalg");
  ARENITE_ASK("avx512vpopcntdq");
  ARENITE_ASK("avx512bf16");
  ARENITE_ASK("gfni");
  ARENITE_ASK("vpclmulqdq");
#undef ARENITE_ASK
  return all;
}

std::string cpu_name() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* at = words.data() + 4 * i;
    if (__get_cpuid(0x80000002 + i, at, at + 1, at + 2, at + 3) == 0) return "unknown CPU";
  }
  std::string name(reinterpret_cast<const char*>(words.data()), sizeof(words));
  name.resize(std::min(name.find('\0'), name.size()));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.substr(std::min(name.find_first_not_of(' '), name.size()));
}
#else
constexpr bool known_processor = false;
std::vector<std::string_view> instructions_here() { return {}; }
std::string cpu_name() { return "a CPU other than x86-64"; }
#endif

bool has(const std::vector<std::string_view>& all, std::string_view name) {
  return std::ranges::find(all, name) != all.end();
}

/// What AVX-512 kernels are written in (codelets/avx512.hpp).
constexpr std::array avx512{"avx512f", "avx512bw", "avx512dq", "avx512vl"};

bool has_avx512(const std::vector<std::string_view>& all) {
  return std::ranges::all_of(avx512, [&](const char* name) { return has(all, name); });
}

/// A product of whole numbers by code that LIBXSMM makes now, as kernels have it make theirs.
enum class Jit : std::uint8_t { right, wrong, none };

Jit try_jit() {
  constexpr std::int64_t n = 16;
  constexpr std::size_t size = n * n;
  const auto run = codelets::xsmm::dispatch({.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n});
  if (run == nullptr) return Jit::none;
  std::array<float, size> a, b, c{}, right{};
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = static_cast<float>(i % 7) - 3;
    b[i] = static_cast<float>(i % 5) - 2;
  }
  for (std::size_t column = 0; column < n; ++column) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t row = 0; row < n; ++row)
        right[column * n + row] += a[k * n + row] * b[column * n + k];
    }
  }
  const float *as = a.data(), *bs = b.data();
  const codelets::xsmm::Count count = 1;
  run(&as, &bs, c.data(), &count);
  return c == right ? Jit::right : Jit::wrong;
}

}  // namespace

Finding check_cpu() {
  Finding finding;
  const std::vector<std::string_view> here = instructions_here();
  const auto listed = codelets::kernel_instructions();
  const std::vector<std::string_view> built(listed.begin(), listed.end());
  std::vector<std::string_view> missing;
  std::ranges::copy_if(built, std::back_inserter(missing),
                       [&](std::string_view name) { return !has(here, name); });
  const bool bf16 = has(here, "avx512bf16");
  finding.says = fmt::format("{}: {}{}", cpu_name(),
                             has_avx512(here)    ? "AVX-512"
                             : has(here, "avx2") ? "AVX2, no AVX-512"
                             : known_processor   ? "no AVX2"
                                                 : "plain loops",
                             bf16 ? " with bfloat16" : "");
  finding.facts = {{"name", cpu_name()},
                   {"avx2", has(here, "avx2")},
                   {"avx512", has_avx512(here)},
                   {"avx512_bf16", bf16},
                   {"kernels_built_for", built},
                   {"missing", missing},
                   {"plain_kernels", ARENITE_PLAIN_KERNELS != 0}};
  if (!missing.empty()) {
    finding.fails(fmt::format("kernels were compiled for instructions that this CPU lacks: {}",
                              fmt::join(missing, " ")),
                  rebuild);
    return finding;  // what follows might use them
  }
  if (ARENITE_PLAIN_KERNELS != 0) {
    finding.note("this build runs plain loops alone, many times as slow",
                 "train with another, in Arenite's source: scripts/build release");
    return finding;
  }
  if (has_avx512(here) && !has_avx512(built))
    finding.note("kernels were compiled without AVX-512, which this CPU has", rebuild);
  const Jit jit = try_jit();
  const std::string target = libxsmm_get_target_arch();
  finding.details.push_back(fmt::format("LIBXSMM {} makes code for '{}'", LIBXSMM_VERSION, target));
  finding.facts["libxsmm"] = {
      {"version", LIBXSMM_VERSION}, {"target", target}, {"makes_code", jit == Jit::right}};
  if (jit == Jit::none) {
    finding.note("LIBXSMM makes no code here: products of matrices take plain loops",
                 "it needs AVX2, memory that may be executed, and no LIBXSMM_TARGET in the "
                 "environment");
  } else if (jit == Jit::wrong) {
    finding.fails("code that LIBXSMM makes gives wrong results",
                  "unset LIBXSMM_TARGET, or install another LIBXSMM");
  }
  return finding;
}

}  // namespace arenite::cli::doctor
