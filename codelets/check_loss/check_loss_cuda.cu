#include "codelets/check_loss/check_loss.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"

namespace arenite::codelets {
namespace {

void run(const KernelCall& call, const CheckLoss& of) {
  const Losses losses = losses_of(call, of);
  const float* rate = of.renews ? call.in<float>(0) : nullptr;
  float* same = of.renews ? call.out<float>(0) : nullptr;
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
    if (const std::uint32_t code = losses.fault(); code != 0) cuda::report(status, op, code);
    if (rate) *same = *rate;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(check_loss)(runtime::KernelTable& kernels) {
  kernels.add("check_loss", cuda::own(prepare<check_loss, run>));
}

}  // namespace arenite::codelets
