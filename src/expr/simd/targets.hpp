// The instruction sets that files on Highway are compiled for: AVX-512 as far as Skylake-X has it,
// AVX2 with FMA, and plain C++ for any machine. They include this before foreach_target.h.
#pragma once

// Only here: compilers, and versions of Highway, differ in what they would take for any machine.
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (~(HWY_AVX3 | HWY_AVX2 | HWY_SCALAR))
