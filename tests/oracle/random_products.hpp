// Random products and pieces of matrices, views, and values whose axes change places.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// One of any ranks and ways to read the operands.
void add_product(RandomValues& values);

/// One weight's gradient over two lanes, sometimes some rows of it.
void add_lanes_dense(RandomValues& values);

/// What comes from a dense layer to a ReLU before it.
void add_dense_to_relu(RandomValues& values);

/// Some columns of matrices one below the other, or some rows of matrices side by side.
void add_columns(RandomValues& values);

/// Of all of a value or some of its rows, now and then of none.
void add_view(RandomValues& values);

/// Of any type but codes of pooling windows: those are addresses.
void add_permutation(RandomValues& values);

}  // namespace arenite::oracle
