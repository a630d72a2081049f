#include "tests/oracle/on_runtime.hpp"
#include "src/base/element.hpp"

#include <arenite/operators.hpp>

#include <algorithm>
#include <cstring>

namespace arenite::oracle {
namespace {

class OnRuntime {
 public:
  OnRuntime(runtime::Session& session, const RandomProgram& program,
            const runtime::ProgramOptions& options, const runtime::KernelTable& table)
      : random_(program), set_(session, table, program.programs, options) {}

  /// Persistent storages as the program finds them.
  void reset() {
    for (const runtime::ProgramSpec& spec : random_.programs) {
      for (const plan::Placement& place : spec.plan.placements) {
        if (!graph::is_persistent(place.cls)) continue;
        const auto bytes = set_.state<std::byte>(place.name);
        const auto first = random_.state.find(place.name);
        if (first == random_.state.end()) {
          std::ranges::fill(bytes, std::byte{0});
        } else {
          std::ranges::copy(first->second, bytes.begin());
        }
      }
    }
  }

  void submit(const Step& step) { fill(step).submit(); }
  void run(const Step& step) { fill(step).run({.steps = 1}); }

  Seen look(const Step& step) {
    runtime::Program& program = of(step);
    program.wait();
    Seen seen;
    const graph::Graph& graph = program.spec().graph;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      with_element(graph[graph.outputs[i]].type, [&](auto zero) {
        const auto bytes = std::as_bytes(program.output<decltype(zero)>(i));
        seen.outputs.emplace_back(bytes.begin(), bytes.end());
      });
    }
    for (const runtime::ProgramSpec& spec : random_.programs) {
      for (const plan::Placement& place : spec.plan.placements) {
        if (!graph::is_persistent(place.cls)) continue;
        const auto bytes = set_.state<std::byte>(place.name);
        seen.state[place.name].assign(bytes.begin(), bytes.end());
      }
    }
    return seen;
  }

 private:
  runtime::Program& fill(const Step& step) {
    runtime::Program& program = of(step);
    const graph::Graph& graph = program.spec().graph;
    for (const auto& [name, bytes] : step.inputs) {
      with_element(graph[graph.find(name)].type, [&, &name = name, &bytes = bytes](auto zero) {
        std::memcpy(program.input<decltype(zero)>(name), bytes.data(), bytes.size());
      });
    }
    return program;
  }
  runtime::Program& of(const Step& step) { return set_[random_.programs[step.program].name]; }

  const RandomProgram& random_;
  runtime::ProgramSet set_;
};

}  // namespace

RuntimeTrace run_on(runtime::Session& session, const RandomProgram& program,
                    const runtime::ProgramOptions& options, const runtime::KernelTable& table) {
  OnRuntime runtime(session, program, options, table);
  RuntimeTrace trace;
  runtime.reset();
  for (const Step& step : program.steps) {
    runtime.submit(step);
    trace.steps.push_back(runtime.look(step));
  }
  runtime.reset();
  for (const Step& step : program.steps) {
    runtime.run(step);
    trace.crews.push_back(runtime.look(step));
  }
  runtime.reset();
  for (const Step& step : program.steps) runtime.submit(step);
  trace.ahead = runtime.look(program.steps.back());
  return trace;
}

}  // namespace arenite::oracle
