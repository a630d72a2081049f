#include <arenite/graph/spaces.hpp>
#include <arenite/operators.hpp>

#include "src/graph/versions.hpp"
#include "tests/oracle/executor.hpp"
#include "tests/oracle/touches.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace arenite::oracle {
namespace {

struct Written {
  std::size_t result = 0, bytes = 0;
  bool is_float = false;
};

struct MixState {
  std::vector<std::size_t> read;  // by operand: bytes
  std::vector<Written> written;
  std::vector<std::pair<std::size_t, std::size_t>> in_place;  // (result, operand)
  std::size_t workspace = 0;
  std::uint64_t salt = 0;
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

std::uint64_t mixed(std::uint64_t hash, const std::byte* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; i += sizeof hash) {
    std::uint64_t word = count;
    std::memcpy(&word, bytes + i, std::min(sizeof word, count - i));
    hash = mixed(hash, word);
  }
  return hash;
}

void scatter(std::uint64_t hash, void* to, std::size_t count) {
  auto* bytes = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < count; i += sizeof hash) {
    hash = mixed(hash, i);
    std::memcpy(bytes + i, &hash, std::min(sizeof hash, count - i));
  }
}

/// Numbers of 0.5 to 1, or their negatives: what real kernels are given of them stays finite.
void tame(void* numbers, std::size_t bytes) {
  auto* words = static_cast<std::uint32_t*>(numbers);
  for (std::size_t i = 0; i < bytes / sizeof *words; ++i)
    words[i] = (words[i] & 0x807fffffu) | 0x3f000000u;
}

/// Whether a kernel that goes from element to element has read the operand where it writes.
bool is_read_first(const MixState& state, const runtime::KernelCall& call, std::size_t operand) {
  return std::ranges::any_of(state.in_place, [&](const auto& pair) {
    return pair.second == operand && call.results[pair.first] == call.operands[operand];
  });
}

/// The worst that a kernel may do: it spoils its results and its workspace before it reads the
/// operands, but for those whose bytes it may write in place.
void run_mix(const runtime::KernelCall& call, const MixState& state) {
  std::vector<std::uint64_t> hashes(state.read.size());
  const auto read = [&](bool first) {
    for (std::size_t i = 0; i < state.read.size(); ++i) {
      if (state.read[i] == 0 || is_read_first(state, call, i) != first) continue;
      hashes[i] = mixed(i, static_cast<const std::byte*>(call.operands[i]), state.read[i]);
    }
  };
  read(true);
  for (const Written& one : state.written) scatter(1, call.results[one.result], one.bytes);
  scatter(2, call.workspace, state.workspace);
  read(false);
  std::uint64_t hash = state.salt;
  for (std::uint64_t operand : hashes) hash = mixed(hash, operand);
  for (const auto& [result, bytes, is_float] : state.written) {
    hash = mixed(hash, result);
    scatter(hash, call.results[result], bytes);
    if (is_float) tame(call.results[result], bytes);
  }
}

runtime::PreparedKernel mixing_kernel(const graph::Graph& graph, graph::OpId id) {
  const graph::Op& op = graph[id];
  const auto bytes = [&](graph::ValueId value) {
    return value ? static_cast<std::size_t>(value_bytes(graph, value)) : 0;
  };
  MixState state{.in_place = graph::pairs_in_place(graph, op),
                 .workspace = bytes(op.workspace),
                 .salt = mixed(0, id.index)};
  for (const graph::ValueId operand : op.operands) state.read.push_back(bytes(operand));
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (is_view(graph, op, i)) continue;
    const bool is_float = graph[op.results[i]].type == DType::float32;
    state.written.push_back({i, bytes(op.results[i]), is_float});
  }
  return runtime::prepared<run_mix>(std::move(state));
}

template <class Make>
Kernels make_all(const RandomProgram& program, Make make) {
  Kernels all;
  for (const runtime::ProgramSpec& spec : program.programs) {
    auto& kernels = all.emplace_back(spec.graph.op_count());
    for (const graph::Task& task : spec.schedule.tasks) {
      for (graph::OpId id : task.ops) kernels[id.index] = make(spec.graph, id);
    }
  }
  return all;
}

}  // namespace

Kernels real_kernels(const RandomProgram& program) {
  return make_all(program, [](const graph::Graph& graph, graph::OpId id) {
    const graph::Op& op = graph[id];
    const DeviceKind device = graph::space_of(graph, op).device;
    return kernels().at(op, op.kernel, device).prepare({graph, op});
  });
}

Kernels mixing_kernels(const RandomProgram& program) { return make_all(program, mixing_kernel); }

}  // namespace arenite::oracle
