#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_kernels();
  register_formulas();
  register_groups();
  register_blocks();
  benchmark::RunSpecifiedBenchmarks();
}
