#include "codelets/words.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t bytes;
};

State build(const OpView& op) {
  const graph::Value& value = op.operand(0);
  return {graph::byte_size(value.type, value.shape)};
}

void assign(const KernelCall& call) {
  const std::int64_t bytes = static_cast<const State*>(call.state)->bytes;
  std::copy_n(call.in<std::uint8_t>(1), bytes, call.out<std::uint8_t>(0));
}

void identity(const KernelCall& call) {
  const std::int64_t bytes = static_cast<const State*>(call.state)->bytes;
  std::copy_n(call.in<std::uint8_t>(0), bytes, call.out<std::uint8_t>(0));
}

}  // namespace

std::vector<Kernel> assign_kernels() {
  return {{.name = "plain", .prepare = prepare<build, assign>}};
}
std::vector<Kernel> identity_kernels() {
  return {{.name = "plain", .prepare = prepare<build, identity>}};
}

}  // namespace arenite::codelets
