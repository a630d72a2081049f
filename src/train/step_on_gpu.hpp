// A network's training step as one GPU of a large memory would run it, which has the images: to
// look at without a session, or without a GPU.
#pragma once

#include <arenite/nn/nn.hpp>

#include "src/train/compiled_step.hpp"

#include <string>

namespace arenite::train {

/// Throws Error, as `nn::model` does, on a network that nobody knows.
inline compile::Compiled step_on_gpu(const std::string& network, std::int64_t batch) {
  const auto& model = nn::model(network);
  StepRequest request;
  request.name = "train";
  request.batch = batch;
  request.dataset = 60'000;
  request.image = model.image;
  request.resident = true;
  request.how.spaces = {{.device = DeviceKind::cuda,
                         .index = 0,
                         .memory = MemoryKind::device,
                         .capacity = std::int64_t{64} << 30}};
  return compile_step(model.layers, nn::cross_entropy(),
                      optim::sgd({.lr = 0.02f, .momentum = 0.9f}), request);
}

}  // namespace arenite::train
