// What an operator's folder sees of the tables it fills.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

namespace arenite::codelets {

/// Both tables while they are being filled. A folder may register several operators that belong
/// together (an op and its gradient).
struct Registry {
  graph::OperatorTable& operators;
  runtime::KernelTable& kernels;

  /// Both or neither: a refused kernel leaves no definition without kernels behind.
  void add(graph::OperatorDefinition definition, std::vector<runtime::Kernel> op_kernels) {
    const std::string name = definition.name;
    runtime::KernelTable trial;
    for (const auto& known : kernels.find(name)) trial.add(name, known);
    for (const auto& kernel : op_kernels) trial.add(name, kernel);
    operators.add(std::move(definition));
    for (auto& kernel : op_kernels) kernels.add(name, std::move(kernel));
  }
};

#define ARENITE_OPERATOR(folder) void register_##folder(Registry& registry);
#include "codelets/operators.def"
#undef ARENITE_OPERATOR

}  // namespace arenite::codelets
