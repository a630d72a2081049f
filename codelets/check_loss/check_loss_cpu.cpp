#include "codelets/check_loss/check_loss.hpp"

namespace arenite::codelets {
namespace {

void run(const KernelCall& call, const CheckLoss& of) {
  if (const std::uint32_t code = losses_of(call, of).fault(); code != 0)
    call.status->report(call.op, code);
  if (of.renews) call.renewed<float>(0, 0, 1);
}

}  // namespace

std::vector<Kernel> check_loss_kernels() {
  return {{.name = "plain", .prepare = prepare<check_loss, run>}};
}

}  // namespace arenite::codelets
