// What nvcc wants said of functions, and other compilers do not know.
#pragma once

#ifdef __CUDACC__
#define ARENITE_GPU __host__ __device__       // a function that grids call
#define ARENITE_THREAD __device__             // a lambda that a grid is given
#define ARENITE_UNROLL_ALL _Pragma("unroll")  // one whose variables are to be registers
#define ARENITE_KEEP_ROLLED _Pragma("unroll 1")
#else
#define ARENITE_GPU
#define ARENITE_THREAD
#define ARENITE_UNROLL_ALL
#define ARENITE_KEEP_ROLLED
#endif
