#include "codelets/avx512.hpp"

namespace arenite::codelets {

bool built_with_avx512() noexcept {
#ifdef ARENITE_AVX512
  return true;
#else
  return false;
#endif
}

}  // namespace arenite::codelets
