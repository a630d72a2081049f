#include "codelets/pairwise_kernel.hpp"

#include <functional>

namespace arenite::codelets {

std::vector<Kernel> add_kernels() { return pairwise_kernels<std::plus<>>(); }

}  // namespace arenite::codelets
