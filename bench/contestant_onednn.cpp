#include "bench/contestant.hpp"
#include "bench/onednn_loop.hpp"

namespace arenite::bench {
namespace {

class Onednn : public Contestant {
 public:
  Onednn(const data::Split& train, const ContestantOptions& options)
      : loop_(train, {.network = options.network,
                      .batch = options.batch,
                      .threads = options.workers,
                      .learning_rate = options.learning_rate,
                      .momentum = options.momentum}) {}

  void first_step() override { loop_.run(0); }
  Turn run(double seconds) override {
    const OnednnLoop::Part part = loop_.run(seconds);
    return {.samples = part.samples, .seconds = part.seconds, .loss = part.loss};
  }
  Json profile(double /*seconds*/) override { return {}; }
  std::string version() const override { return "oneDNN " + onednn_version() + " with OpenMP"; }
  std::string configuration() const override {
    return "primitives and memory made once, scratch memory shared, formats as the primitives "
           "prefer, ReLU fused; denormals flushed on all threads";
  }

 private:
  OnednnLoop loop_;
};

}  // namespace

std::unique_ptr<Contestant> make_onednn(const data::Split& train,
                                        const ContestantOptions& options) {
  return std::make_unique<Onednn>(train, options);
}

}  // namespace arenite::bench
