// ThreadSanitizer through the plan's own edges: it is silent on sound plans, and reports every edge
// that was dropped and that kept two accesses apart. Only in builds with ThreadSanitizer.
//
// Stand-ins touch every byte that an op's kernel may touch: unlike the oracle in bits, this sees
// two tasks that share nothing but scratch.
#include <gtest/gtest.h>

#include "tests/oracle/dropped_edges.hpp"
#include "tests/oracle/on_runtime.hpp"
#include "tests/oracle/touches.hpp"

#include <algorithm>
#include <set>

#define UNCHECKED [[gnu::noinline, gnu::no_sanitize("thread")]]

namespace {
volatile int reports = 0;
}  // namespace

/// ThreadSanitizer calls this for each report, where a program has it.
extern "C" UNCHECKED void __tsan_on_report(void* /*report*/) { reports = reports + 1; }

namespace arenite::oracle {
namespace {

UNCHECKED int reported() { return reports; }

/// Whether the host's kernels have raced enough: one report a run says it all.
UNCHECKED bool seen_a_race() { return reports > 0; }
UNCHECKED void forget() { reports = 0; }

struct Ranges {
  struct Range {
    enum class Kind { operand, result, workspace } kind;
    std::size_t index = 0, bytes = 0;
    bool reads = false, writes = false;
  };
  std::vector<Range> all;
};

/// Calls f with the range's words, and with the bytes before and after them, up to the first race:
/// a report takes a millisecond. ThreadSanitizer remembers the last four accesses to a word: eight
/// bytes would be more than that.
template <class F>
void for_each_word(void* address, std::size_t bytes, F f) {
  auto* at = static_cast<unsigned char*>(address);
  unsigned char* const end = at + bytes;
  for (; at != end && reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0; ++at)
    f(*static_cast<volatile unsigned char*>(at));
  for (; end - at >= std::ptrdiff_t{sizeof(std::uint64_t)} && !seen_a_race();
       at += sizeof(std::uint64_t))
    f(*reinterpret_cast<volatile std::uint64_t*>(at));
  for (; at != end && !seen_a_race(); ++at) f(*static_cast<volatile unsigned char*>(at));
}

void run_touching(const runtime::KernelCall& call, const Ranges& ranges) {
  if (seen_a_race()) return;
  const auto at = [&](const Ranges::Range& range) {
    return range.kind == Ranges::Range::Kind::operand  ? call.operands[range.index]
           : range.kind == Ranges::Range::Kind::result ? call.results[range.index]
                                                       : call.workspace;
  };
  for (const Ranges::Range& range : ranges.all) {
    if (range.reads)
      for_each_word(at(range), range.bytes, [](auto& word) { static_cast<void>(+word); });
  }
  for (const Ranges::Range& range : ranges.all) {
    if (range.writes) for_each_word(at(range), range.bytes, [](auto& word) { word = 1; });
  }
}

runtime::PreparedKernel touching_kernel(const graph::OpView& view) {
  const graph::Graph& graph = view.graph();
  const graph::Op& op = view.op();
  Ranges ranges;
  using Kind = Ranges::Range::Kind;
  const auto add = [&](Kind kind, std::size_t index, graph::ValueId value, bool reads,
                       bool writes) {
    if (!value) return;
    ranges.all.push_back(
        {kind, index, static_cast<std::size_t>(value_bytes(graph, value)), reads, writes});
  };
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    add(Kind::operand, i, op.operands[i], true, false);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (!is_view(graph, op, i)) add(Kind::result, i, op.results[i], false, true);
  }
  add(Kind::workspace, 0, op.workspace, false, true);
  return runtime::prepared<run_touching>(std::move(ranges));
}

runtime::KernelTable touching_kernels(const RandomProgram& program) {
  runtime::KernelTable table;
  std::set<std::pair<std::string, std::string>> known;
  for (const runtime::ProgramSpec& spec : program.programs) {
    for (const graph::Task& task : spec.schedule.tasks) {
      for (graph::OpId id : task.ops) {
        const graph::Op& op = spec.graph[id];
        if (known.emplace(op.name(), op.kernel).second)
          table.add(op.name(), {.name = op.kernel, .prepare = touching_kernel});
      }
    }
  }
  return table;
}

/// True when the two ops touch a byte in common, and one of them writes it.
bool collide(const runtime::ProgramSpec& spec, const Meeting& meeting) {
  const auto before = touches(spec.graph, meeting.before),
             after = touches(spec.graph, meeting.after);
  return std::ranges::any_of(before, [&](const Touch& x) {
    const plan::Placement& a = spec.plan.placement(x.storage);
    return !a.external && std::ranges::any_of(after, [&](const Touch& y) {
      const plan::Placement& b = spec.plan.placement(y.storage);
      return !b.external && a.block == b.block && (x.writes || y.writes) &&
             a.offset + x.begin < b.offset + y.end && b.offset + y.begin < a.offset + x.end;
    });
  });
}

int races(runtime::Session& session, const RandomProgram& program) {
  forget();
  run_on(session, program, {.verify = false}, touching_kernels(program));
  return reported();
}

TEST(RaceCheck, IsSilentOnSoundPlans) {
  runtime::Session session({.workers = 2});
  for (std::uint32_t number = 0; number < 60; ++number)
    EXPECT_EQ(races(session, random_program(number)), 0) << "program " << number;
}

TEST(RaceCheck, ReportsEveryDroppedEdgeThatKeptAccessesApart) {
  runtime::Session session({.workers = 2});
  int edges = 0, reuse = 0;
  for (std::uint32_t number = 0; number < 12; ++number) {
    const RandomProgram program = random_program(number);
    int data = 0;  // edges; a few of each program will do, building it again takes long here
    for (const Drop& drop : drops(program)) {
      if (!drop.reuse && ++data > 4) continue;
      const RandomProgram broken = without(program, drop);
      const runtime::ProgramSpec& spec = broken.programs[drop.program];
      const bool expected = std::ranges::any_of(
          meetings(broken, drop), [&](const Meeting& meeting) { return collide(spec, meeting); });
      EXPECT_EQ(races(session, broken) > 0, expected)
          << "program " << number << " without " << text(program, drop);
      edges += expected;
      reuse += expected && drop.reuse;
    }
  }
  EXPECT_GT(edges, 10);
  EXPECT_GT(reuse, 1);
}

}  // namespace
}  // namespace arenite::oracle
