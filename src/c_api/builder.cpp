#include "src/c_api/handles.hpp"

#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include "src/graph/parser.hpp"
#include "src/graph/statements.hpp"

struct arenite_builder {
  arenite::graph::Statements statements{arenite::operators()};
};

namespace {

using namespace arenite;
using namespace arenite::c_api;
using graph::Statements;

Statements::Given values_of(const arenite_value* values, std::size_t count, const char* what) {
  if (count > 0) given(values, what);
  return {values, count};
}

/// Whether there is room for what a statement makes is asked once it is made: then it is undone.
void hand_over(arenite_builder& builder, const Statements::Numbers& made, arenite_value* results,
               std::size_t room, std::size_t* count) {
  if (made.size() > room) {
    builder.statements.undo();
    refuse("room for " + std::to_string(room) + " results", std::to_string(made.size()));
  }
  std::ranges::copy(made, results);
  if (count != nullptr) *count = made.size();
}

/// Operand number `index` of a call, as the caller describes it.
graph::Value value_of(const arenite_port& port, std::size_t index) {
  const std::string number = "$" + std::to_string(index + 1);
  const int type = static_cast<int>(port.type);
  if (type < ARENITE_FLOAT32 || type > ARENITE_UINT8 || port.rank < 0 ||
      port.rank > ARENITE_MAX_RANK) {
    refuse(number + " of type " + std::to_string(type) + " and rank " + std::to_string(port.rank),
           "one of arenite_type, and a rank of 0 to 8");
  }
  graph::Value value;
  value.name = port.name == nullptr ? number : port.name;
  value.type = static_cast<DType>(type);
  value.shape = Shape(std::span(port.shape, static_cast<std::size_t>(port.rank)));
  return value;
}

/// What a call makes of these operands. Nobody asks where in it an error is.
std::vector<graph::ResultType> infer(const char* call, const arenite_port* operands,
                                     std::size_t count) {
  std::vector<graph::Value> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(value_of(operands[i], i));
  return graph::without_place(
      [&] { return graph::Parser(call, operators(), "").infer(std::move(values)); });
}

}  // namespace

arenite_status arenite_builder_create(arenite_builder** builder, char** message) {
  return run(message, [&] { make(builder, "the builder's place"); });
}

void arenite_builder_free(arenite_builder* builder) { delete builder; }

arenite_status arenite_builder_add(arenite_builder* builder, const char* statement,
                                   const arenite_value* operands, size_t operand_count,
                                   arenite_value* results, size_t room, size_t* result_count,
                                   char** message) {
  return run(message, [&] {
    arenite_builder& own = given(builder, "the builder");
    if (room > 0) given(results, "the results");
    hand_over(own,
              own.statements.add(&given(statement, "the statement"),
                                 values_of(operands, operand_count, "the operands"), room > 0),
              results, room, result_count);
  });
}

arenite_status arenite_builder_begin(arenite_builder* builder, const char* call,
                                     const arenite_value* operands, size_t operand_count,
                                     arenite_value* parameters, size_t room,
                                     size_t* parameter_count, char** message) {
  return run(message, [&] {
    arenite_builder& own = given(builder, "the builder");
    if (room > 0) given(parameters, "the parameters");
    hand_over(own,
              own.statements.begin(&given(call, "the call"),
                                   values_of(operands, operand_count, "the operands")),
              parameters, room, parameter_count);
  });
}

arenite_status arenite_builder_end(arenite_builder* builder, const arenite_value* yields,
                                   size_t yield_count, arenite_value* results, size_t room,
                                   size_t* result_count, char** message) {
  return run(message, [&] {
    arenite_builder& own = given(builder, "the builder");
    if (room > 0) given(results, "the results");
    hand_over(own, own.statements.end(values_of(yields, yield_count, "the yields")), results, room,
              result_count);
  });
}

arenite_status arenite_builder_undo(arenite_builder* builder, char** message) {
  return run(message, [&] { given(builder, "the builder").statements.undo(); });
}

arenite_status arenite_builder_value(const arenite_builder* builder, arenite_value value,
                                     arenite_port* port, char** message) {
  return run(message, [&] {
    const graph::Value& found = given(builder, "the builder").statements.value(value);
    write({.name = {}, .type = found.type, .shape = found.shape}, port);
    port->name = found.name.c_str();
  });
}

arenite_status arenite_builder_script(arenite_builder* builder, const arenite_value* outputs,
                                      size_t output_count, char** script, char** message) {
  return run(message, [&] {
    c_api::hand_over(
        graph::print(given(builder, "the builder")
                         .statements.graph(values_of(outputs, output_count, "the outputs"))),
        given(script, "the script's place"));
  });
}

arenite_status arenite_infer(const char* call, const arenite_port* operands, size_t operand_count,
                             arenite_port* results, size_t room, size_t* result_count,
                             char** message) {
  return run(message, [&] {
    if (operand_count > 0) given(operands, "the operands");
    size_t& count = given(result_count, "the number of results");
    const std::vector<graph::ResultType> types =
        infer(&given(call, "the call"), operands, operand_count);
    if (types.size() > room)
      refuse("room for " + std::to_string(room) + " results", std::to_string(types.size()));
    if (!types.empty()) given(results, "the results");
    for (std::size_t i = 0; i < types.size(); ++i) {
      write({.name = {}, .type = types[i].type, .shape = types[i].shape}, &results[i]);
      results[i].name = nullptr;
    }
    count = types.size();
  });
}
