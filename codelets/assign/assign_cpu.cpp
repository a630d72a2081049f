#include "codelets/words.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

std::int64_t bytes_of(const OpView& op) {
  return graph::byte_size(op.operand(0).type, op.operand(0).shape);
}

template <std::size_t operand>
void copy(const KernelCall& call, const std::int64_t& bytes) {
  std::copy_n(call.in<std::uint8_t>(operand), bytes, call.out<std::uint8_t>(0));
}

}  // namespace

std::vector<Kernel> assign_kernels() {
  return {{.name = "plain", .prepare = prepare<bytes_of, copy<1>>}};
}
std::vector<Kernel> identity_kernels() {
  return {{.name = "plain", .prepare = prepare<bytes_of, copy<0>>}};
}

}  // namespace arenite::codelets
