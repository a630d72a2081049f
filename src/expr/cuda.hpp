// Expressions as CUDA C++, which a GPU's compiler is given while a program is built.
#pragma once

#include <arenite/expr/expression.hpp>

#include <string>
#include <vector>

namespace arenite::expr {

/// What stands before all that reads types or functions: their names and meaning.
std::string cuda_preamble();

/// How a type is called there.
std::string_view cuda_name(Type type) noexcept;

/// What the element at one place is made of.
struct CudaNames {
  std::vector<std::string> operands;  ///< their elements, by operand
  std::vector<std::string> indices;   ///< int64: the place, by axis of what is gone through
  std::int64_t group = 1;             ///< elements of one
};

/// All bits of a constant.
std::string cuda_constant(const Node& constant);

/// The statement that makes a node, which is called "t" and its number then, of its sources; not of
/// a reduction.
std::string cuda_statement(const Expression& expression, NodeId node, const CudaNames& names);

/// A statement for each node, behind so many blanks each; `results` is what they are called then.
struct CudaStatements {
  std::string text;
  std::vector<std::string> results;
};
CudaStatements cuda_statements(const Expression& expression, const CudaNames& names,
                               std::string_view indent);

}  // namespace arenite::expr
