// What `verify` throws: an Error that remembers which op or value is at fault, so that the parser
// can point at its statement.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/graph.hpp>

#include <string>

namespace arenite::graph {

class Flaw : public Error {
 public:
  Flaw(const ErrorText& text, OpId op_at_fault, ValueId value_at_fault)
      : Error(text), op(op_at_fault), value(value_at_fault) {}

  OpId op;
  ValueId value;
};

/// "value 'conv1' (#3)"
std::string describe_value(const Graph& graph, ValueId id);

[[noreturn]] void op_flaw(const Graph& graph, OpId op, std::string found, std::string expected);
[[noreturn]] void value_flaw(const Graph& graph, ValueId value, std::string found,
                             std::string expected);
[[noreturn]] void graph_flaw(std::string where, std::string found, std::string expected);

/// The parts of `verify` that look at one op, at all in program order, and at named sizes. Ids and
/// structure are checked already. `scratch`: any op, for its memory.
void verify_op(const Graph& graph, OpId op, Op& scratch);
void verify_order(const Graph& graph);
void verify_run_time_sizes(const Graph& graph);

}  // namespace arenite::graph
