// The rules that every graph keeps, behind each pass too.
//
//   graph::verify(graph);   // throws Error naming the op or the value at fault
//
// The rules:
//  - ids are in range; storages' merges end, stay in one space and never into fewer bytes
//  - an op stands in exactly one region, a region is held by exactly one op, all are reached from
//  the body
//  - a value lies inside its storage, halo included; a view lies where its operator says, inside
//  its
//    owner; a storage holds one value and its views; only values of rank 4 have a halo
//  - operands, attributes and results are what the operator's schema and shape rule say
//  - declared values (no producer) have names of their own and bytes of their own
//  - program order: defined before used, captures of regions included; results and outputs are
//  there
//  - nothing forward reads what backward produced, and so on; once an update has written a
//  parameter,
//    no forward or backward op reads it any more
//  - nothing writes a constant, and an input only results of an op that reads constants and inputs;
//  only init and update ops write parameters and optimizer state
//  - a result shares bytes with an operand only where the operator allows it (`in_place`), and
//  nothing
//    reads a value once another result has taken its bytes; a region overwrites no value from
//    outside unless that is an operand of its op
//
// O(n log n). Reads only; safe from any thread.
#pragma once

#include <arenite/graph/graph.hpp>

namespace arenite::graph {

void verify(const Graph& graph);

}  // namespace arenite::graph
