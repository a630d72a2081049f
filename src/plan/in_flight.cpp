#include <arenite/plan/in_flight.hpp>

#include <arenite/error.hpp>

#include <algorithm>
#include <utility>

#include "src/plan/text.hpp"

namespace arenite::plan {

Problem with_tasks_in_flight(const Problem& problem, std::int64_t tasks) {
  if (tasks < 1) {
    fail({.found = digits(tasks) + " tasks in flight", .expected = "at least 1"});
  }
  if (problem.precedence() != nullptr) {
    fail({.found = "tasks in flight for buffers in a partial order",
          .expected = "buffers with lifetimes: an order says itself what runs side by side"});
  }
  Problem longer;
  longer.set_granule(problem.granule());
  for (Buffer buffer : problem.buffers()) {
    if (buffer.lifetime == Lifetime{}) {
      fail({.found = "buffer '" + buffer.name + "' without a lifetime", .expected = "one"});
    }
    if (tasks - 1 > Problem::limit - std::max<std::int64_t>(buffer.lifetime.end, 0)) {
      fail({.found = "a lifetime that ends " + digits(tasks - 1) + " moments after " +
                     digits(buffer.lifetime.end),
            .expected = "an end of at most 2^60",
            .where = "buffer '" + buffer.name + "'",
            .hint = "fewer tasks in flight"});
    }
    buffer.lifetime.end += tasks - 1;
    for (Lifetime& gap : buffer.gaps) gap.begin = std::min(gap.begin + tasks - 1, gap.end);
    std::erase_if(buffer.gaps, [](const Lifetime& gap) { return gap.begin == gap.end; });
    longer.add(std::move(buffer));
  }
  return longer;
}

}  // namespace arenite::plan
