#include "tests/oracle/random_attention.hpp"

namespace arenite::oracle {
namespace {

using graph::ValueId;

void add_rms_norm(RandomValues& values) {
  const ValueId x = values.tensor(), weight = values.floats({values.shape(x).at(-1)});
  // A small eps magnifies what a row of zeros gets.
  values.builder.add("rms_norm", {x, weight}, {{"eps", values.draw.of({1e-2, 0.1, 0.1})}});
}

}  // namespace

void add_attention_op(RandomValues& values) { add_rms_norm(values); }

}  // namespace arenite::oracle
