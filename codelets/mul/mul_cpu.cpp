#include "codelets/pairwise_kernel.hpp"

#include <functional>

namespace arenite::codelets {

std::vector<Kernel> mul_kernels() { return pairwise_kernels<std::multiplies<>>(); }

}  // namespace arenite::codelets
