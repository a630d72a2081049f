// Programs with one edge too few, and orders that show it.
//
//   for (const Drop& drop : drops(program)) {
//     const RandomProgram broken = without(program, drop);
//     execute(broken, kernels, orders_against(broken, drop).front(), Poison::dead);   // other bits
//   }
//
// Such a plan is refused by plan::verify_step; ProgramOptions::verify = false runs it all the same,
// if nothing in it `trusts_its_data`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/oracle/orders.hpp"

namespace arenite::oracle {

/// An edge of a program's schedule, or one that its plan added for reuse.
struct Drop {
  std::size_t program = 0;
  bool reuse = false;
  plan::TaskEdge edge;
};

std::string text(const RandomProgram& program, const Drop& drop);

/// Every edge that no path of others implies.
std::vector<Drop> drops(const RandomProgram& program);

RandomProgram without(const RandomProgram& program, const Drop& drop);

/// Two ops that only the dropped edge kept apart, and that meet in a byte, or in a value of none.
struct Meeting {
  graph::OpId before, after;
  bool matters = false;  ///< one that reads there what the other spoils has a say in what is seen
};

/// Those of the edge's own tasks first, and of all, those that matter.
std::vector<Meeting> meetings(const RandomProgram& broken, const Drop& drop);

/// Two orders that let the later op of a meeting run first, in every step: as late as what the
/// earlier one reads is there, so that it is overwritten; and before anything the earlier one
/// needs, so that what it leaves is overwritten.
std::vector<std::vector<Event>> orders_against(const Timeline& timeline,
                                               const RandomProgram& broken, const Drop& drop,
                                               const Meeting& meeting);

}  // namespace arenite::oracle
