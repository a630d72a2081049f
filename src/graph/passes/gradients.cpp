#include <arenite/graph/passes.hpp>

#include "src/graph/passes/backward.hpp"
#include "src/graph/passes/verify_pass.hpp"

namespace arenite::graph {

std::vector<ValueId> add_gradients(Builder& builder, const std::vector<ValueId>& losses,
                                   const std::vector<ValueId>& wrt, const GradientDone& done,
                                   const BatchCut& cut) {
  const std::vector<bool> wanted = values_after(builder.graph(), wrt);
  Backward backward(builder, Graph::body, Graph::body, wanted, cut);
  for (ValueId loss : losses) backward.add_loss(loss);
  std::vector<ValueId> gradients(wrt.size());
  backward.run([&](ValueId complete) {
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      if (wrt[i] != complete) continue;
      gradients[i] = backward.total(complete);
      if (gradients[i] && done) done(i, gradients[i]);
    }
  });
  verify_pass(builder.graph());
  return gradients;
}

}  // namespace arenite::graph
