// The rival: cnn2 trained by bare oneDNN calls, as somebody who knows the library would write them.
//
// conv 3x3x32, ReLU, max-pool 2, conv 3x3x64, ReLU, max-pool 2, dense 128, ReLU, dense 10, softmax
// cross-entropy, SGD with momentum, fp32. Primitives are created once, in the formats they prefer;
// weights stay in the forward pass's format. One thread may use a loop; its primitives run on
// OpenMP threads.
#pragma once

#include <arenite/data/dataset.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace arenite::bench {

/// "2.6.3"; empty in a build without oneDNN, where a loop cannot be made.
std::string onednn_version();

class OnednnLoop {
 public:
  struct Options {
    std::int64_t batch = 64;
    int threads = 1;
    float learning_rate = 0.02f, momentum = 0.9f;
    std::uint64_t seed = 1;  ///< of initial weights and shuffling
  };
  struct Epoch {
    double loss = 0;  ///< mean over the samples
    std::int64_t samples = 0;
    double seconds = 0;
  };

  /// The split's bytes are borrowed. Throws Error without oneDNN, and on images that are not 28x28
  /// grey.
  OnednnLoop(const data::Split& train, const Options& options);
  ~OnednnLoop();
  OnednnLoop(const OnednnLoop&) = delete;
  OnednnLoop& operator=(const OnednnLoop&) = delete;

  /// Trains on at most `batches` whole batches of the split, in a new order.
  Epoch run(std::int64_t batches);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite::bench
