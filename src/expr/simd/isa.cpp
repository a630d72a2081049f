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

const Isa& isa_named(std::string_view name) {
  std::string there;
  for (const Isa& isa : isas) {
    if (!supports(isa.target)) continue;
    there += there.empty() ? "" : ", ";
    there += isa.name;
    if (isa.name == name) return isa;
  }
  const std::string where = "environment variable ARENITE_ISA";
  std::string found(name);
  if (name == "avx512" || name == "avx2") {
    found += ", which this machine lacks";
    fail({.found = found, .expected = "what it has: " + there, .where = where});
  }
  fail({.found = "'" + found + "'", .expected = "avx512, avx2 or baseline", .where = where});
}

/// Highway names a target by a bit, and better ones by lower bits.
const Isa& chosen() {
  static const Isa& isa = []() -> const Isa& {
    const char* name = std::getenv("ARENITE_ISA");
    const Isa& found = name == nullptr || *name == '\0' ? best() : isa_named(name);
    // Behind the last call of SupportedTargets(), which forgets what dispatches may take.
    hwy::DisableTargets(found.target - 1);
    return found;
  }();
  return isa;
}

}  // namespace

void apply_isa() { chosen(); }

std::string_view isa() { return chosen().name; }

}  // namespace arenite::expr
