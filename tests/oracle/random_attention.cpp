#include "tests/oracle/random_attention.hpp"

namespace arenite::oracle {
namespace {

using graph::ValueId;

void add_rms_norm(RandomValues& values) {
  const ValueId x = values.tensor(), weight = values.floats({values.shape(x).at(-1)});
  // A small eps magnifies what a row of zeros gets.
  values.builder.add("rms_norm", {x, weight}, {{"eps", values.draw.of({1e-2, 0.1, 0.1})}});
}

void add_softmax(RandomValues& values) {
  const ValueId x = values.tensor();
  const std::int64_t last = values.shape(x).at(-1);
  switch (values.draw.below(3)) {
    case 0:
      values.builder.add("softmax", {x});
      break;
    case 1:
      values.builder.add("sliced_softmax", {x}, {{"prefix", values.draw.between(0, last)}});
      break;
    default:
      values.builder.add("sliced_softmax", {x, values.index(last)});
  }
}

}  // namespace

void add_attention_op(RandomValues& values) {
  if (values.draw.chance(50)) {
    add_rms_norm(values);
  } else {
    add_softmax(values);
  }
}

}  // namespace arenite::oracle
