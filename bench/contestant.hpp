// Who trains in bench/compare, when asked to.
#pragma once

#include <arenite/data/dataset.hpp>

#include "src/base/json.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace arenite::bench {

struct ContestantOptions {
  std::string network;  ///< of nn::models()
  std::int64_t batch = 64;
  int workers = 1;
  float learning_rate = 0.02f, momentum = 0.9f;
  std::string device = "cpu", compute = "float32", kernels;  ///< of arenite train; ours only
};

struct Turn {
  std::int64_t samples = 0;
  double seconds = 0;  ///< all of it, shuffling too
  double loss = 0;     ///< a sample's mean, of an epoch's part; to see that it learns
};

class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual void first_step() = 0;
  /// About as long; at least a step.
  virtual Turn run(double seconds) = 0;
  /// Where the time of steps goes, for about as long: runtime::to_json. Null where nobody knows.
  virtual Json profile(double seconds) = 0;
  virtual std::string version() const = 0;
  virtual std::string configuration() const = 0;
  virtual int lanes() const { return 0; }  ///< of all shards; ours only
};

/// A turn with {"busy_seconds", "kernels"} besides: how long a GPU's kernels ran in it, by the
/// library that $ARENITE_KERNEL_TRACE names (bench/kernel_trace.cpp); or {"error": why nobody
/// knows}.
Json traced(Contestant& contestant, double seconds);

/// The split's bytes are borrowed, and those of the last, smaller batch are left out. Throw Error.
std::unique_ptr<Contestant> make_arenite(const data::Split& train,
                                         const ContestantOptions& options);
std::unique_ptr<Contestant> make_onednn(const data::Split& train, const ContestantOptions& options);
/// Products of matrices; its samples are floating-point operations.
std::unique_ptr<Contestant> make_gemm(int workers);

}  // namespace arenite::bench
