#include "codelets/cuda/generated.hpp"

namespace arenite::codelets::cuda {

std::string source_of_each(std::string_view preamble, std::string_view parameters,
                           std::string_view body, std::int64_t count) {
  std::string source(preamble);
  source += is_narrow(count) ? "using Index = int;\n" : "using Index = long;\n";
  source += "extern \"C\" __global__ void each(";
  source += parameters;
  source += R"(, Index count, const volatile unsigned long* status,
                                const volatile unsigned long* failed) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  if (status != nullptr && (*status != 0 || *failed != 0)) return;
  const Index stride = static_cast<Index>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
)";
  source += body;
  source += "  }\n}\n";
  return source;
}

}  // namespace arenite::codelets::cuda
