// What attention adds to layers: norms.
#include "tests/reference/operator_cases.hpp"

namespace arenite::reference {

std::vector<OperatorCase> attention_cases() {
  const CaseOperand x{{3, 2, 7}};
  return {{"rms_norm", {x, {{7}}}, {}},
          {"rms_norm", {{{5, 33}}, {{33}}}, {{"eps", 0.5}}},
          {"rms_norm", {{{17}}, {{17}}}, {}}};
}

}  // namespace arenite::reference
