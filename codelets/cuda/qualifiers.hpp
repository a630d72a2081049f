// What nvcc wants said of functions, and other compilers do not know.
#pragma once

#ifdef __CUDACC__
#define ARENITE_GPU __host__ __device__     // a function that grids call
#define ARENITE_THREAD __device__           // a lambda that a grid is given
#define ARENITE_UNROLL _Pragma("unroll 8")  // a loop whose loads are to be under way together
#else
#define ARENITE_GPU
#define ARENITE_THREAD
#define ARENITE_UNROLL
#endif
