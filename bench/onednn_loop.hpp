// The rival: a network trained by bare oneDNN calls, as somebody who knows the library would write
// them.
//
// Convolutions with ReLU, max-pool 2, dense layers with ReLU but for the last, softmax
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
    std::string network = "cnn2";  ///< of nn::models()
    std::int64_t batch = 64;
    int threads = 1;
    float learning_rate = 0.02f, momentum = 0.9f;
    std::uint64_t seed = 1;  ///< of initial weights and shuffling
  };
  struct Part {
    double loss = 0;  ///< mean over the samples
    std::int64_t samples = 0;
    double seconds = 0;
  };

  /// The split's bytes are borrowed. Throws Error without oneDNN, on a network it does not know,
  /// and on images that are not the network's.
  OnednnLoop(const data::Split& train, const Options& options);
  ~OnednnLoop();
  OnednnLoop(const OnednnLoop&) = delete;
  OnednnLoop& operator=(const OnednnLoop&) = delete;

  /// Trains on whole batches for so long, at least on one; where it ended, the next call goes on.
  /// Samples come in a new order whenever all have been seen.
  Part run(double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite::bench
