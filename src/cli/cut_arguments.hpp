// How `arenite train` and `arenite plan` are told to cut a batch.
#pragma once

#include "src/cli/checks.hpp"

namespace arenite::cli {

/// 0: not given.
struct CutArguments {
  int shards = 0, lanes = 0, at_once = 0;
};

inline void add_cut(Command& command, CutArguments& cut) {
  constexpr int most_parts = 64;
  add_whole_number(command, "--shards", cut.shards, 1, most_parts,
                   "shards of a batch, whose gradients are added in a fixed tree (else chosen from "
                   "the network and the batch); results depend on it, but not on the number of "
                   "workers");
  add_whole_number(command, "--lanes", cut.lanes, 1, most_parts,
                   "parts of a shard that run in parallel (else chosen likewise; one of each of "
                   "the shards that are asked for); results depend on it, too");
  add_whole_number(command, "--at-once", cut.at_once, 1, most_parts,
                   "shards under way together (else enough for all workers; on GPUs all): fewer "
                   "need less memory, and results are the same");
}

}  // namespace arenite::cli
