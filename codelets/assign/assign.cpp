// assign(target, value, after?) -> assigned: the value, of any type, as a new version of the
// target: what a parameter, a state, a buffer or a view of one holds in the next step. It is made
// once `after` is there, whatever that is. identity(x) -> y: the same as a new value, in any space.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> assign_kernels();
std::vector<Kernel> identity_kernels();

void register_assign(Registry& registry) {
  registry.add(
      {.name = "assign",
       .operands = {{.name = "target", .renews = graph::Renews::state}, {"value"}, {"after", true}},
       .results = {"assigned"},
       .infer = [](const OpView& op) -> Results {
         expect_like(op, 1, 0);
         return like_first(op);
       },
       .gradient =
           [](graph::GradientContext& context) {
             if (context.wants(1) && context.result_gradient(0))
               context.set(1, context.result_gradient(0));
           }},
      assign_kernels());
  registry.add({.name = "identity",
                .operands = {{"x"}},
                .results = {"y"},
                .infer = like_first,
                .gradient = gradient_of_first([](auto&, ValueId gradient) { return gradient; }),
                .simplify = same_shape,
                .of_share = rows_of_first<>},
               identity_kernels());
}

}  // namespace arenite::codelets
