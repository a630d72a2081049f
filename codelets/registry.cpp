#include "codelets/registry.hpp"

#include <arenite/graph/regions.hpp>

#include <mutex>

namespace arenite {
namespace {

struct Tables {
  graph::OperatorTable operators;
  runtime::KernelTable kernels;
  std::mutex mutex;

  Tables() {
    codelets::Registry registry{operators, kernels};
#define ARENITE_OPERATOR(folder) codelets::register_##folder(registry);
#include "codelets/operators.def"
#undef ARENITE_OPERATOR
    graph::add_region_operators(operators);
  }
};

Tables& tables() {
  static Tables instance;
  return instance;
}

}  // namespace

graph::OperatorTable& operators() { return tables().operators; }
runtime::KernelTable& kernels() { return tables().kernels; }

void register_operator(graph::OperatorDefinition definition,
                       std::vector<runtime::Kernel> op_kernels) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  codelets::Registry{all.operators, all.kernels}.add(std::move(definition), std::move(op_kernels));
}

}  // namespace arenite
