// Any bytes as a planning table: an Error with a place, or a problem whose plan is sound and whose
// table with offsets reads back to the same buffers, each with the place it was given.
#include <arenite/plan/csv.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include "tests/fuzz/fuzzing.hpp"

#include <string>
#include <string_view>

namespace {

using namespace arenite;
using fuzzing::accepted;
using fuzzing::require;

void check(std::string_view text, const plan::Problem& problem) {
  plan::Plan plan;
  // Fixed places may overlap.
  if (!accepted([&] { plan = plan::solve(problem, {.strategy = "first_fit_by_size"}); })) return;
  plan::verify(problem, plan);
  // Fixed offsets count towards the limit too: what is near it need not read back.
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    sum += problem[i].bytes + problem[i].alignment;
    if (plan.offsets[i] > plan::Problem::limit - sum) return;
    sum += plan.offsets[i];
  }
  const plan::Problem again = plan::read_csv(plan::write_csv(text, "table", plan), "again");
  require(again.size() == problem.size(), "rows that were lost");
  for (std::size_t i = 0; i < again.size(); ++i) {
    plan::Buffer expected = problem[i];
    expected.offset = plan.offsets[i];
    require(again[i] == expected, "a row that does not read back: " + expected.name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  plan::Problem problem;
  if (accepted([&] { problem = plan::read_csv(text, "table"); })) check(text, problem);
  return 0;
}
