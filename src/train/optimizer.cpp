#include <arenite/error.hpp>
#include <arenite/train/optimizer.hpp>

#include <cmath>

namespace arenite::optim {

Optimizer sgd(SgdOptions options) {
  const bool sound = std::isfinite(options.lr) && options.momentum >= 0 && options.momentum < 1 &&
                     std::isfinite(options.weight_decay) && options.weight_decay >= 0;
  if (!sound) {
    fail({.found = "sgd with lr " + std::to_string(options.lr) + ", momentum " +
                   std::to_string(options.momentum) + ", weight decay " +
                   std::to_string(options.weight_decay),
          .expected = "a finite lr, a momentum of 0 to below 1, a weight decay of at least 0"});
  }
  return {.learning_rate = options.lr,
          .name = "sgd",
          .attributes = {{"momentum", static_cast<double>(options.momentum)},
                         {"weight_decay", static_cast<double>(options.weight_decay)}}};
}

}  // namespace arenite::optim
