#include "codelets/rows.hpp"
#include "codelets/words.hpp"
#include "src/base/element.hpp"

namespace arenite::codelets {
namespace {

template <class T>
struct State {
  Rows rows;
  T value;
};

template <class T>
void run(const KernelCall& call) {
  const auto& state = *static_cast<const State<T>*>(call.state);
  T* y = call.out<T>(0);
  for (std::int64_t r = 0; r < state.rows.count(); ++r)
    std::fill_n(y + state.rows.at(r), state.rows.length(), state.value);
  state.rows.zero_halo(y);
}

template <class T>
PreparedKernel prepare_for(const OpView& op) {
  const graph::Value& y = op.result(0);
  return {run<T>, std::make_shared<const State<T>>(
                      State<T>{Rows(y, any_halo({&y})), static_cast<T>(op.real("value"))})};
}

PreparedKernel choose(const OpView& op) {
  return with_element(op.result(0).type,
                      [&](auto zero) { return prepare_for<decltype(zero)>(op); });
}

}  // namespace

std::vector<Kernel> full_kernels() {
  return {{.name = "plain", .prepare = choose, .writes_halo = true}};
}

}  // namespace arenite::codelets
