#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

struct State {
  bool two = false;  ///< b is there
  std::uint64_t scale = 1, offset = 0;
};

void run(const KernelCall& call, const State& state) {
  // Unsigned: these wrap around where signed ones must not overflow.
  const auto operand = [&](std::size_t i) {
    return static_cast<std::uint64_t>(*call.in<std::int64_t>(i));
  };
  const std::uint64_t scaled = state.two ? state.scale * operand(1) : 0;
  *call.out<std::int64_t>(0) = static_cast<std::int64_t>(operand(0) + scaled + state.offset);
}

State state_of(const OpView& op) {
  return {.two = op.has_operand(1),
          .scale = static_cast<std::uint64_t>(op.integer("scale")),
          .offset = static_cast<std::uint64_t>(op.integer("offset"))};
}

}  // namespace

std::vector<Kernel> index_sum_kernels() {
  return {{.name = "plain", .prepare = prepare<state_of, run>}};
}

}  // namespace arenite::codelets
