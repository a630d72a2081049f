#include "tests/oracle/random_program.hpp"

#include <cstring>
#include <utility>

namespace arenite::oracle {
namespace {

template <class T>
void put(Bytes& bytes, std::int64_t index, double value) {
  const T element = static_cast<T>(value);
  std::memcpy(bytes.data() + static_cast<std::size_t>(index) * sizeof(T), &element, sizeof(T));
}

}  // namespace

RandomProgram random_program(std::uint32_t number, std::uint32_t data,
                             const std::vector<Space>& spaces) {
  return number % 2 == 0 ? random_ops(number / 2, data, spaces)
                         : random_network(number / 2, data, spaces);
}

graph::Spaces lanes_in_turn(const std::vector<Space>& spaces, int lanes) {
  graph::Spaces placed{.shared = spaces.front(), .lanes = {}};
  for (int lane = 0; lane < lanes; ++lane)
    placed.lanes.push_back(spaces[static_cast<std::size_t>(lane) % spaces.size()]);
  return placed;
}

bool is_copied_constant(const graph::Graph& graph, graph::ValueId id) {
  const graph::Storage& storage = graph.root_storage(id);
  return graph[id].is_declared() && storage.cls == graph::StorageClass::constant &&
         storage.space != Space{};
}

const Bytes& constant_bytes(const RandomProgram& program, const std::string& name) {
  const auto known = program.constants->find(name);
  return known != program.constants->end() ? known->second
                                           : program.constants->at(name.substr(0, name.rfind('@')));
}

RandomProgram without_sharing(const RandomProgram& program) {
  RandomProgram apart = program;
  plan::StateLayout state;
  for (runtime::ProgramSpec& spec : apart.programs) {
    // What persists is what its versions are written to.
    std::vector<bool> persists;
    for (std::size_t i = 0; i < spec.graph.storage_count(); ++i) {
      const graph::StorageId root = spec.graph.root(graph::StorageId(i));
      persists.push_back(graph::is_persistent(spec.graph.storage(root).cls));
    }
    for (std::size_t i = 0; i < persists.size(); ++i)
      if (!persists[i]) spec.graph.storage(graph::StorageId(i)).merged_into = {};
    spec.schedule = graph::coarsen(spec.graph, spec.target);
    spec.plan = plan::plan_step(spec.graph, spec.schedule, state,
                                {.layout = spec.plan.layout, .reuse = false, .solve = {}});
  }
  complete(apart, *program.constants, state);
  return apart;
}

bool trusts_its_data(const RandomProgram& program) {
  for (const runtime::ProgramSpec& spec : program.programs) {
    for (graph::OpId id : spec.graph[graph::Graph::body].ops) {
      const graph::OpView op(spec.graph, spec.graph[id]);
      if (op.op().kernel.empty()) continue;
      for (std::size_t i = 0; i < op.operand_count(); ++i) {
        if (op.has_operand(i) && op.operand(i).type == DType::uint8 &&
            spec.graph.root_storage(op.op().operands[i]).cls != graph::StorageClass::constant)
          return true;
      }
    }
  }
  return false;
}

graph::TargetProfile random_target(Draw& draw) {
  graph::TargetProfile target;
  target.name = "random";
  target.task_microseconds = draw.of({0.0, 0.0, 0.0, 0.7, 2.0, 10.0});
  target.phase_microseconds = draw.of({0.0, 0.0, 0.0, 0.0, 5.0, 200.0});
  target.meeting_microseconds = draw.of({0.0, 0.3, 4.0});
  target.handover_gigabytes = draw.of({1e-6, 15.0});  // dear enough to split any weight
  return target;
}

Bytes random_bytes(Draw& draw, DType type, std::int64_t count, double low, double high) {
  Bytes bytes(static_cast<std::size_t>(count * size_of(type)));
  for (std::int64_t i = 0; i < count; ++i) {
    switch (type) {
      case DType::float32:
        put<float>(bytes, i, draw.real(low, high));
        break;
      case DType::float64:
        put<double>(bytes, i, draw.real(low, high));
        break;
      case DType::int64:
        put<std::int64_t>(bytes, i, draw.real(low, high + 1));
        break;
      case DType::int32:
        put<std::int32_t>(bytes, i, draw.real(low, high + 1));
        break;
      case DType::uint8:
        put<std::uint8_t>(bytes, i, draw.real(low, high + 1));
    }
  }
  return bytes;
}

void complete(RandomProgram& program, NamedBytes constants, const plan::StateLayout& state) {
  program.constants = std::make_shared<const NamedBytes>(std::move(constants));
  for (runtime::ProgramSpec& spec : program.programs) {
    spec.constants.clear();
    for (const auto& [name, bytes] : *program.constants)
      spec.constants[name] = {bytes.data(), static_cast<std::int64_t>(bytes.size())};
    for (plan::BlockPlan& block : spec.plan.blocks) {
      if (block.persistent) block.bytes = state.bytes(block.space);
    }
  }
}

}  // namespace arenite::oracle
