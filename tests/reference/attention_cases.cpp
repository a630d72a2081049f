// What attention adds to layers: norms, softmax, rotations by complex numbers.
#include "tests/reference/operator_cases.hpp"

namespace arenite::reference {

std::vector<OperatorCase> attention_cases() {
  const CaseOperand x{{3, 2, 7}}, logits{.shape = {3, 17}, .low = -3, .high = 3},
      length{{1}, false, DType::int64, 0, 17};
  std::vector<OperatorCase> all{{"rms_norm", {x, {{7}}}, {}},
                                {"rms_norm", {{{5, 33}}, {{33}}}, {{"eps", 0.5}}},
                                {"rms_norm", {{{17}}, {{17}}}, {}},
                                {"softmax", {logits}, {}},
                                {"softmax", {{{2, 3, 5}}}, {}},
                                {"log_softmax", {logits}, {}},
                                {"sliced_softmax", {logits, length}, {}}};
  // Rows of more elements than a warp has threads, more than a block has.
  const CaseOperand many{{9, 70}}, many_logits{.shape = {9, 70}, .low = -3, .high = 3};
  all.push_back({"rms_norm", {many, {{70}}}, {}});
  all.push_back({"layer_norm", {x, {{7}}, {{7}}}, {}});
  all.push_back({"layer_norm", {many, {{70}}, {{70}}}, {{"eps", 0.5}}});
  for (const char* of : {"softmax", "log_softmax"}) all.push_back({of, {many_logits}, {}});
  all.push_back({"sliced_softmax", {many_logits}, {{"prefix", 41}}});
  for (std::int64_t prefix : {0, 1, 5, 17})
    all.push_back({"sliced_softmax", {logits}, {{"prefix", prefix}}});
  const CaseOperand same{{3, 4, 5, 2}}, whole{{3, 4, 5, 2}}, middle{{1, 4, 1, 2}},
      outer{{3, 1, 5, 2}}, one{{1, 1, 1, 2}};
  for (std::int64_t conjugate : {0, 1}) {
    for (const CaseOperand& b : {whole, middle, outer, one})
      all.push_back({"complex_mul", {same, b}, {{"conjugate", conjugate}}});
    const CaseOperand a64{{4, 3, 2}, true, DType::float64}, b64{{1, 3, 2}, true, DType::float64};
    all.push_back({"complex_mul", {a64, b64}, {{"conjugate", conjugate}}});
  }
  return all;
}

}  // namespace arenite::reference
