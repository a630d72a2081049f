#include "codelets/registry.hpp"

#include <arenite/graph/regions.hpp>

#include "codelets/cuda/libraries.hpp"
#include "codelets/map/map.hpp"
#include "codelets/rounded_factors.hpp"

#include <mutex>

namespace arenite::codelets {
// Here, so that a new operator's line has no other file compiled anew.
#define ARENITE_OPERATOR(folder) void register_##folder(Registry& registry);
#include "codelets/operators.def"
#undef ARENITE_OPERATOR
#if ARENITE_HAVE_CUDA
#define ARENITE_OPERATOR(folder) void register_##folder##_tiled(runtime::KernelTable& kernels);
#include "tiled_operators.def"
#undef ARENITE_OPERATOR
#define ARENITE_LIBRARY_KERNELS(folder, library) \
  void register_##folder##_##library(runtime::KernelTable& kernels);
#include "library_kernels.def"
#undef ARENITE_LIBRARY_KERNELS
#define ARENITE_OPERATOR(folder) void register_##folder##_cuda(runtime::KernelTable& kernels);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
#endif
}  // namespace arenite::codelets

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
#if ARENITE_HAVE_CUDA
    // A library's kernels are faster than most of our own, which take what it has none for; some
    // of ours are made for what a library does badly.
#define ARENITE_OPERATOR(folder) codelets::register_##folder##_tiled(kernels);
#include "tiled_operators.def"
#undef ARENITE_OPERATOR
#define ARENITE_LIBRARY_KERNELS(folder, library) codelets::register_##folder##_##library(kernels);
#include "library_kernels.def"
#undef ARENITE_LIBRARY_KERNELS
#define ARENITE_OPERATOR(folder) codelets::register_##folder##_cuda(kernels);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
    kernels.on_devices = {.warm_up = codelets::cuda::warm_up_libraries,
                          .take_failure = codelets::cuda::take_failure};
#endif
    codelets::share_kernels_of_map(operators, kernels);
  }
};

Tables& tables() {
  static Tables instance;
  return instance;
}

}  // namespace

void codelets::Registry::add(graph::OperatorDefinition definition, std::vector<Kernel> op_kernels) {
  add_rounding_kernels(definition, op_kernels);
  const std::string name = definition.name;
  runtime::KernelTable trial;
  for (const auto& known : kernels.find(name)) trial.add(name, known);
  for (const auto& kernel : op_kernels) trial.add(name, kernel);
  operators.add(std::move(definition));
  for (auto& kernel : op_kernels) kernels.add(name, std::move(kernel));
}

graph::OperatorTable& operators() { return tables().operators; }
runtime::KernelTable& kernels() { return tables().kernels; }

void register_operator(graph::OperatorDefinition definition,
                       std::vector<runtime::Kernel> op_kernels) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  codelets::Registry{all.operators, all.kernels}.add(std::move(definition), std::move(op_kernels));
  codelets::share_kernels_of_map(all.operators, all.kernels);
}

}  // namespace arenite
