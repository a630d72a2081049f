// Random convolutions and poolings, whose windows fit their images.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// Alone, or with ReLU and max pooling in one go.
void add_convolution(RandomValues& values);
/// What comes from a convolution to a ReLU before it.
void add_convolution_to_relu(RandomValues& values);

void add_pooling(RandomValues& values);

}  // namespace arenite::oracle
