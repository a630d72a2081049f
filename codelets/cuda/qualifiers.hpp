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

/// The inline namespace of classes in headers whose functions start grids: what nvcc makes of them
/// and what a C++ compiler does are other functions, and a program may hold both.
#ifdef __CUDACC__
#define ARENITE_GRIDS grids_of_a_gpu
#else
#define ARENITE_GRIDS grids_as_loops
#endif
