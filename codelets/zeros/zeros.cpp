// zeros(shape, type="float32"): a tensor of zeros. What a block yields as the gradient of a value
// that it does not depend on.
#include "codelets/zeros/zeros.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

namespace arenite::codelets {

void register_zeros(Registry& registry) {
  graph::OperatorDefinition zeros;
  zeros.name = "zeros";
  zeros.results = {"y"};
  zeros.attributes = {{"shape", graph::AttributeType::integers, {}},
                      {"type", graph::AttributeType::text, std::string("float32")}};
  zeros.infer = [](const graph::OpView& op) -> std::vector<graph::ResultType> {
    return {{parse_dtype(op.attributes().text("type")), Shape(op.attributes().integers("shape"))}};
  };
  registry.add(std::move(zeros), zeros_kernels());
}

}  // namespace arenite::codelets
