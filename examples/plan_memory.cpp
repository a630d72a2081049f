// The planner alone: three buffers of 20 KiB together, planned into 12.
//
//   12 KiB +-----------------+
//          |        x        |
//    8 KiB +-----+-----+-----+-----+
//          |     |  y  |     z     |    z takes y's bytes, which are free when it begins
//        0 +-----+-----+-----------+
//          0     1     2     3     4    time
#include <arenite/plan/draw.hpp>
#include <arenite/plan/solve.hpp>

#include <iostream>

using namespace arenite;

int main() {
  plan::Problem problem;
  problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
  problem.add({.name = "y", .bytes = 8192, .lifetime = {1, 2}});
  problem.add({.name = "z", .bytes = 8192, .lifetime = {2, 4}});

  const plan::Plan plan = plan::solve(problem);

  std::cout << plan.peak << (plan.optimal ? " bytes, proved optimal\n" : " bytes\n")
            << plan::draw_text(plan);
  plan::draw(plan, "plan.svg");
}
