// What an operator's folder sees of the tables it fills.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include "codelets/words.hpp"

namespace arenite::codelets {

/// Both tables while they are being filled. A folder may register several operators that belong
/// together (an op and its gradient).
struct Registry {
  graph::OperatorTable& operators;
  runtime::KernelTable& kernels;

  /// Both or neither: a refused kernel leaves no definition without kernels behind. An operator
  /// with factors gets kernels for bfloat16 besides. A folder declares the kernels, which are in
  /// files of their own, where it registers them.
  void add(graph::OperatorDefinition definition, std::vector<Kernel> op_kernels);
};

}  // namespace arenite::codelets
