// Random ops that write what they are given.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// To a buffer, or to what an op has made.
void add_accumulation(RandomValues& values);

/// Of what is there; in the phase of updates also of parameters, and with a velocity.
void add_update(RandomValues& values, Phase phase);
/// An update of w by any optimizer but sgd, of states of its own.
void add_optimizer(RandomValues& values, graph::ValueId w, graph::ValueId gradient,
                   graph::ValueId rate);

/// One that makes its gradient itself, of a weight of its own.
void add_weight_update(RandomValues& values);

/// Of several weights of its own, some with a gradient that is yet to be summed.
void add_multi_update(RandomValues& values);

}  // namespace arenite::oracle
