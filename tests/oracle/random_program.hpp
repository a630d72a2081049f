// Random programs: graphs of real operators, led through the real passes, planned, with data to run
// them on.
//
//   RandomProgram program = random_program(17);       // the same one every time
//   Trace trace = run_on(session, program).steps;     // on_runtime.hpp
//   for (const Drop& drop : drops(program)) …         // dropped_edges.hpp: one edge less
//
// Even numbers are random ops with random users, odd ones training steps of random networks. Plain
// values; safe from any thread.
#pragma once

#include <arenite/runtime/program.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/oracle/draw.hpp"

namespace arenite::oracle {

using Bytes = std::vector<std::byte>;
using NamedBytes = std::map<std::string, Bytes>;

/// One step: which program runs, and what the host puts into its inputs before.
struct Step {
  std::size_t program = 0;
  NamedBytes inputs;
};

struct RandomProgram {
  std::vector<runtime::ProgramSpec> programs;   ///< over the same blocks; constants are bound
  std::shared_ptr<const NamedBytes> constants;  ///< what the programs' constants point to
  NamedBytes state;                             ///< what persistent storages begin with, else zeros
  std::vector<Step> steps;                      ///< at least 4
};

/// `data`: other numbers to run the same program on. `spaces`: where lanes run in turn, and in the
/// first what they share.
RandomProgram random_program(std::uint32_t number, std::uint32_t data = 0,
                             const std::vector<Space>& spaces = {Space{}});

/// The two kinds; `random_program` chooses.
RandomProgram random_ops(std::uint32_t seed, std::uint32_t data, const std::vector<Space>& spaces);
RandomProgram random_network(std::uint32_t seed, std::uint32_t data,
                             const std::vector<Space>& spaces);

/// What `random_ops` leads through passes, and numbers for what it declares.
struct RandomGraph {
  graph::Graph graph;
  NamedBytes numbers;
};
RandomGraph random_ops_graph(std::uint32_t seed);

/// So many lanes, in turn, in `spaces`.
graph::Spaces lanes_in_turn(const std::vector<Space>& spaces, int lanes);
/// A constant's copy on a device, which has no bytes of its own.
bool is_copied_constant(const graph::Graph& graph, graph::ValueId id);

/// The bytes of a constant of that name, in whatever space.
const Bytes& constant_bytes(const RandomProgram& program, const std::string& name);

/// The same with nothing shared: in-place results are taken back, and every storage has bytes of
/// its own. What the others are compared with.
RandomProgram without_sharing(const RandomProgram& program);

/// True when a kernel would trust data that another storage's bytes could spoil: codes of pooling
/// windows are addresses. Such a program must not be run with an edge too few.
bool trusts_its_data(const RandomProgram& program);

/// Task sizes from one op a task to a whole phase a task.
graph::TargetProfile random_target(Draw& draw);

/// `count` elements of the type, integers in [low, high], others in [low, high).
Bytes random_bytes(Draw& draw, DType type, std::int64_t count, double low, double high);

/// Binds `constants`, and tells every program how large the state block has become.
void complete(RandomProgram& program, NamedBytes constants, const plan::StateLayout& state);

}  // namespace arenite::oracle
