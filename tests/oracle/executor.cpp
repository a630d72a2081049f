#include "tests/oracle/executor.hpp"

#include <arenite/error.hpp>

#include "tests/oracle/orders.hpp"
#include "tests/oracle/touches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace arenite::oracle {
namespace {

using graph::Graph;
using graph::OpId;
using graph::StorageClass;
using graph::StorageId;
using graph::ValueId;

constexpr std::byte poison_byte{0xff};
constexpr std::size_t task_sets = 2;

/// CPU workers flush denormals, devices keep them; bits are to be theirs.
class FlushedDenormals {
 public:
#if defined(__SSE__)
  FlushedDenormals() { _mm_setcsr(before_ | 0x8040); }
  ~FlushedDenormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_ = _mm_getcsr();
#endif
};

/// Zeroed bytes that start where a block may.
class Memory {
 public:
  explicit Memory(std::int64_t bytes)
      : granules_(static_cast<std::size_t>((bytes + default_alignment - 1) / default_alignment)) {}

  std::byte* data() { return granules_.empty() ? nullptr : granules_.front().bytes; }
  void fill(std::byte with) {
    for (Granule& granule : granules_) std::fill_n(granule.bytes, default_alignment, with);
  }

 private:
  struct alignas(default_alignment) Granule {
    std::byte bytes[default_alignment]{};
  };
  std::vector<Granule> granules_;
};

/// A storage during a step.
struct Place {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool poisonable = false;  // nothing is in it when a step begins
  bool dies = false;        // nobody looks at it after its last access
  std::size_t accessors = 0, left = 0;
  bool fresh = true;  // not touched in this step
};

struct BoundOp {
  struct Use {
    std::size_t storage = 0;
    bool reads = false;
  };
  runtime::KernelFunction run = nullptr;
  bool on_cpu = true;
  std::vector<void*> operands, results;
  runtime::KernelCall call;
  std::vector<Use> uses;  // each storage once
};

/// A program's ops at the addresses of one task set.
struct BoundSet {
  std::vector<Place> places;  // by storage
  std::vector<BoundOp> ops;   // by op
  runtime::StatusWord status;
};

class Machine {
 public:
  Machine(const RandomProgram& program, const Kernels& kernels, Poison poison)
      : program_(program), poison_(poison == Poison::dead), sets_(program.programs.size()) {
    make_memory();
    for (std::size_t p = 0; p < sets_.size(); ++p) {
      for (std::size_t set = 0; set < task_sets; ++set) bind(p, set, kernels[p]);
    }
  }

  Trace run(std::span<const Event> order) {
    steps_.resize(program_.steps.size());
    submit_ready();
    for (const Event& event : order) {
      if (event.step >= submitted_) refuse(event, "before its step may start");
      RunningStep& step = steps_[event.step];
      run_op(sets_[program_.steps[event.step].program][step.set], event.op);
      if (step.left-- > 1) continue;
      if (event.step != trace_.size()) refuse(event, "ahead of the step before");
      trace_.push_back(look(event.step));
      submit_ready();
    }
    if (trace_.size() < steps_.size())
      refuse({trace_.size(), OpId(0)}, "with ops of its step left out");
    return std::move(trace_);
  }

 private:
  struct RunningStep {
    std::size_t set = 0, left = 0;
  };

  [[noreturn]] static void refuse(const Event& event, const std::string& how) {
    fail({.found = "op " + std::to_string(event.op.index) + " of step " +
                   std::to_string(event.step) + " " + how,
          .expected = "all ops of a step, and those of the steps before first"});
  }

  // ---- memory ----------------------------------------------------------------------------------

  /// Blocks of one name are shared, but for those that a task set has for itself.
  std::string key(std::size_t program, const plan::BlockPlan& block, std::size_t set) const {
    if (!block.per_task_set) return block.name;
    return program_.programs[program].name + "/" + block.name + "." + std::to_string(set);
  }

  void make_memory() {
    std::map<std::string, std::pair<std::int64_t, bool>> wanted;  // bytes, persistent
    for (std::size_t p = 0; p < sets_.size(); ++p) {
      for (const plan::BlockPlan& block : program_.programs[p].plan.blocks) {
        for (std::size_t set = 0; set < task_sets; ++set) {
          auto& [bytes, persistent] = wanted[key(p, block, set)];
          bytes = std::max(bytes, block.bytes);
          persistent = block.persistent;
        }
      }
    }
    for (const auto& [name, want] : wanted) {
      Memory& memory = memory_.emplace(name, want.first).first->second;
      if (poison_ && !want.second) memory.fill(poison_byte);
    }
  }

  void bind(std::size_t p, std::size_t number,
            const std::vector<runtime::PreparedKernel>& kernels) {
    const runtime::ProgramSpec& spec = program_.programs[p];
    const Graph& graph = spec.graph;
    BoundSet& set = sets_[p][number];
    set.places.resize(graph.storage_count());
    set.ops.resize(graph.op_count());
    for (const plan::Placement& placement : spec.plan.placements) {
      Place& place = set.places[placement.storage.index];
      const StorageClass cls = graph.storage(placement.storage).cls;
      place.bytes = static_cast<std::size_t>(graph.storage(placement.storage).bytes);
      place.poisonable = graph::is_transient(cls) || cls == StorageClass::input;
      place.dies = place.poisonable && !is_observed(graph, placement.storage);
      if (placement.external) {
        // Kernels take operands as void*; what they write to a constant shows in the next step.
        place.data = const_cast<std::byte*>(program_.constants->at(placement.name).data());
      } else if (cls == StorageClass::constant) {  // a device's copy
        place.data = const_cast<std::byte*>(constant_bytes(program_, placement.name).data());
      } else {
        const plan::BlockPlan& block = spec.plan.blocks.at(placement.block);
        if (placement.offset < 0 || placement.offset + placement.bytes > block.bytes)
          fail({.found = "'" + placement.name + "' outside block '" + block.name + "'",
                .expected = "a place in it"});
        place.data = memory_.at(key(p, block, number)).data() + placement.offset;
      }
      if (!graph::is_persistent(cls)) continue;
      state_[placement.name] = {place.data, place.bytes};
      const auto first = program_.state.find(placement.name);
      if (first != program_.state.end()) std::ranges::copy(first->second, place.data);
    }
    for (const graph::Task& task : spec.schedule.tasks) {
      for (OpId id : task.ops) {
        bind_op(graph, id, kernels[id.index], set);
        set.ops[id.index].on_cpu = task.space.device == DeviceKind::cpu;
      }
    }
  }

  static void* address(const Graph& graph, ValueId id, BoundSet& set) {
    if (!id || value_bytes(graph, id) == 0) return nullptr;
    std::byte* const storage = set.places[graph.root(id).index].data;
    if (storage == nullptr)
      fail({.found = "'" + graph[id].name + "' without a place", .expected = "one in the plan"});
    return storage + graph[id].offset;
  }

  static void bind_op(const Graph& graph, OpId id, const runtime::PreparedKernel& kernel,
                      BoundSet& set) {
    const graph::Op& op = graph[id];
    BoundOp& bound = set.ops[id.index];
    bound.run = kernel.run;
    bound.operands.resize(std::max(op.operands.size(), op.definition->operands.size()));
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      bound.operands[i] = address(graph, op.operands[i], set);
    for (ValueId result : op.results) bound.results.push_back(address(graph, result, set));
    bound.call = {.operands = bound.operands.data(),
                  .results = bound.results.data(),
                  .workspace = address(graph, op.workspace, set),
                  .state = kernel.state.get(),
                  .status = &set.status,
                  .op = id.index};
    for (const Touch& touch : touches(graph, id)) {
      const auto known = std::ranges::find(bound.uses, touch.storage.index, &BoundOp::Use::storage);
      if (known != bound.uses.end()) {
        known->reads = known->reads || touch.reads;
      } else {
        bound.uses.push_back({touch.storage.index, touch.reads});
        ++set.places[touch.storage.index].accessors;
      }
    }
  }

  // ---- steps -----------------------------------------------------------------------------------

  bool same_program(std::size_t a, std::size_t b) const {
    return program_.steps[a].program == program_.steps[b].program;
  }

  /// Two steps of one program may be under way; another program's waits for all of them.
  void submit_ready() {
    for (; submitted_ < steps_.size(); ++submitted_) {
      const std::size_t ended = trace_.size();
      const bool follows = submitted_ > 0 && same_program(submitted_ - 1, submitted_);
      if (ended + (follows ? 1 : 0) < submitted_) return;
      begin(submitted_);
    }
  }

  void begin(std::size_t number) {
    const Step& step = program_.steps[number];
    const runtime::ProgramSpec& spec = program_.programs[step.program];
    steps_[number].set =
        static_cast<std::size_t>(std::count_if(
            program_.steps.begin(), program_.steps.begin() + static_cast<std::ptrdiff_t>(number),
            [&](const Step& s) { return s.program == step.program; })) %
        task_sets;
    for (const graph::Task& task : spec.schedule.tasks) steps_[number].left += task.ops.size();
    BoundSet& set = sets_[step.program][steps_[number].set];
    set.status.clear();
    for (Place& place : set.places) place.left = place.accessors, place.fresh = true;
    for (const auto& [name, bytes] : step.inputs)
      std::ranges::copy(bytes,
                        static_cast<std::byte*>(address(spec.graph, spec.graph.find(name), set)));
  }

  void run_op(BoundSet& set, OpId id) const {
    BoundOp& op = set.ops.at(id.index);
    for (const BoundOp::Use& use : op.uses) {
      Place& place = set.places[use.storage];
      if (std::exchange(place.fresh, false) && poison_ && place.poisonable && !use.reads)
        std::fill_n(place.data, place.bytes, poison_byte);
    }
    if (op.on_cpu) {
      const FlushedDenormals like_a_worker;
      op.run(op.call);
    } else {
      op.run(op.call);
    }
    for (const BoundOp::Use& use : op.uses) {
      Place& place = set.places[use.storage];
      if (--place.left == 0 && poison_ && place.dies)
        std::fill_n(place.data, place.bytes, poison_byte);
    }
  }

  Seen look(std::size_t number) {
    const Step& step = program_.steps[number];
    const Graph& graph = program_.programs[step.program].graph;
    BoundSet& set = sets_[step.program][steps_[number].set];
    Seen seen;
    seen.status = set.status.load();
    for (ValueId output : graph.outputs) {
      const auto* bytes = static_cast<const std::byte*>(address(graph, output, set));
      seen.outputs.emplace_back(bytes, bytes + value_bytes(graph, output));
    }
    for (const auto& [name, place] : state_)
      seen.state[name].assign(place.first, place.first + place.second);
    return seen;
  }

  const RandomProgram& program_;
  const bool poison_;
  std::map<std::string, Memory> memory_;
  std::map<std::string, std::pair<const std::byte*, std::size_t>> state_;
  std::vector<std::array<BoundSet, task_sets>> sets_;  // [program]
  std::vector<RunningStep> steps_;
  std::size_t submitted_ = 0;
  Trace trace_;
};

std::string first_difference(const Bytes& actual, const Bytes& expected) {
  if (actual.size() != expected.size()) return "sizes";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] != expected[i])
      return "byte " + std::to_string(i) + " of " + std::to_string(actual.size());
  }
  return {};
}

bool is_wild(const Bytes& bytes) {
  for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, bytes.data() + i, sizeof number);
    if (!std::isfinite(number)) return true;
  }
  return false;
}

}  // namespace

Trace execute(const RandomProgram& program, const Kernels& kernels, std::span<const Event> order,
              Poison poison) {
  return Machine(program, kernels, poison).run(order);
}

Trace reference(const RandomProgram& program, const Kernels& kernels) {
  const RandomProgram apart = without_sharing(program);
  return execute(apart, kernels, Timeline(apart).events(), Poison::none);
}

std::string difference(const Trace& actual, const Trace& expected) {
  if (actual.size() != expected.size()) return "the number of steps";
  for (std::size_t s = 0; s < actual.size(); ++s) {
    const std::string step = "step " + std::to_string(s) + ", ";
    const Seen &a = actual[s], &e = expected[s];
    if (a.status != e.status) return step + "status " + std::to_string(a.status);
    if (a.outputs.size() != e.outputs.size()) return step + "the number of outputs";
    for (std::size_t i = 0; i < a.outputs.size(); ++i) {
      const std::string where = first_difference(a.outputs[i], e.outputs[i]);
      if (!where.empty()) return step + "output " + std::to_string(i) + ", " + where;
    }
    for (const auto& [name, bytes] : e.state) {
      const auto found = a.state.find(name);
      const std::string where =
          found == a.state.end() ? "missing" : first_difference(found->second, bytes);
      if (!where.empty()) return step + "'" + name + "', " + where;
    }
  }
  return {};
}

bool has_wild_numbers(const RandomProgram& program, const Trace& trace) {
  for (std::size_t s = 0; s < trace.size(); ++s) {
    const Graph& graph = program.programs[program.steps[s].program].graph;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph[graph.outputs[i]].type == DType::float32 && is_wild(trace[s].outputs[i]))
        return true;
    }
    for (ValueId id : graph.declared(StorageClass::parameter)) {
      if (graph[id].type == DType::float32 && is_wild(trace[s].state.at(graph[id].name)))
        return true;
    }
  }
  return false;
}

}  // namespace arenite::oracle
