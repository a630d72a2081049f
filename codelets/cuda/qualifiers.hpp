// What nvcc wants said of functions, and other compilers do not know.
#pragma once

#ifdef __CUDACC__
#define ARENITE_GPU __host__ __device__  // a function that grids call
#define ARENITE_THREAD __device__        // a lambda that a grid is given
#else
#define ARENITE_GPU
#define ARENITE_THREAD
#endif
