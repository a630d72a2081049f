// What registers benchmarks of operators: not before main, for their tables are made of what other
// files have.
#pragma once

void register_kernels();
void register_formulas();
void register_groups();
void register_blocks();
