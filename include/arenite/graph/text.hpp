// The text form of a graph: what people write and read, and what a graph is saved as.
//
//   $1 = InputTensor(image, float32, [64, 28, 28, 1]);
//   $2 = ParameterTensor(weight, float32, [3, 3, 1, 4]);
//   $3 = conv2d($1, $2, _, padding=[1, 1]) @where("conv1");
//   $4 @in($3) = relu($3);
//   result = $4;
//
// A script is a list of statements, then the result; white space is free, `#` starts a comment.
// docs/script.ebnf is the grammar, docs/scripts.md has an example of each statement.
//
// A statement gives numbers, each once, to the results of an operator; its arguments are operands
// ($k, or `_` for an optional one that is absent), then attributes by their place or by name. `if`
// and `loop` have blocks, see regions.hpp. Declarations are calls too, outside blocks: InputTensor,
// ConstantTensor, BufferTensor, ParameterTensor, StateTensor (of an optimizer), and Tensor for
// every other class. A dimension known only at run time has a name and an upper bound, as in
// [rows<=64, 784] (see run_time_sizes.hpp). Scripts of an earlier form have other names for some
// operators, as SumNode for add; those are read, and printed by the operators' own.
//
// `grad` gives the gradients of one float by other values, as the ops that compute them: that is
// what is printed of it. Statements behind it belong to the backward phase unless a note says
// otherwise. `train` says, once, what add_training in passes.hpp makes of the graph.
//
// Notes say what cannot be derived; a derived one is not printed.
//   value-note   @name("…") @class(output) @halo(1) @bytes(4096)
//                @space(cuda, 0, device [, capacity])   for all values but views, or for none
//                @offset(64) @storage("…")   its storage's name, where it differs from the value's
//                @in($3)                     shares the bytes of $3, as in-place results do
//                @holds($1, $2)              the same said the other way round
//                @workspace(4096)            not a result but the op's scratch bytes
//   op-note      @init @forward @backward @update @evaluate @lane(0) @kernel("xsmm")
//                @where("conv1")
//
// All functions are pure and safe to call from any thread.
#pragma once

#include <arenite/graph/graph.hpp>

#include <string>
#include <string_view>

namespace arenite::graph {

/// The graph as a script. Deterministic; values are numbered from 1 in order of appearance, so that
/// equal graphs print alike but for the places of declarations. Expects a graph that `verify`
/// accepts. Throws Error on a merge into a storage that no value stands for.
std::string print(const Graph& graph);

/// Reads a script. Throws Error whose `where` is "filename:line:column" on whatever is wrong with
/// it: syntax, unknown or repeated names, shapes and types, a rule of `verify`, or a version of a
/// buffer that is replaced twice. Time and memory are bounded by the length of the text, whatever
/// its bytes.
Graph parse(std::string_view text, const OperatorTable& table,
            std::string_view filename = "<script>");

/// True when the graphs say the same, whatever their ids: the same declared values in the same
/// order, the same ops in program order, the same sharing of bytes. Otherwise `why` names the first
/// difference.
bool equal(const Graph& a, const Graph& b, std::string* why = nullptr);

}  // namespace arenite::graph
