#include "src/expr/simd/isa.hpp"

#include <arenite/error.hpp>

#include "src/expr/simd/targets.hpp"

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace arenite::expr {
namespace {

struct Isa {
  std::string_view name;
  std::int64_t target;
};
constexpr std::array isas = {Isa{"avx512", HWY_AVX3}, Isa{"avx2", HWY_AVX2},
                             Isa{"baseline", HWY_SCALAR}};

/// The plain one needs nothing, and Highway need not know it.
bool supports(std::int64_t target) {
  return target == HWY_SCALAR || (hwy::SupportedTargets() & target) != 0;
}

const Isa& best() {
  for (const Isa& isa : isas) {
    if (supports(isa.target)) return isa;
  }
  return isas.back();
}

/// Highway names a target by a bit, and better ones by lower bits.
bool restrict_targets(std::string_view name) {
  std::string there;
  for (const Isa& isa : isas) {
    if (!supports(isa.target)) continue;
    there += there.empty() ? "" : ", ";
    there += isa.name;
    if (isa.name != name) continue;
    hwy::DisableTargets(isa.target - 1);
    return true;
  }
  const std::string where = "environment variable ARENITE_ISA";
  std::string found(name);
  if (name == "avx512" || name == "avx2") {
    found += ", which this machine lacks";
    fail({.found = found, .expected = "what it has: " + there, .where = where});
  }
  fail({.found = "'" + found + "'", .expected = "avx512, avx2 or baseline", .where = where});
}

}  // namespace

void apply_isa() {
  [[maybe_unused]] static const bool applied = [] {
    const char* name = std::getenv("ARENITE_ISA");
    return name == nullptr || *name == '\0' || restrict_targets(name);
  }();
}

std::string_view isa() {
  apply_isa();
  return best().name;
}

}  // namespace arenite::expr
