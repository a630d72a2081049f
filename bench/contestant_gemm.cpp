#include "bench/ceilings.hpp"
#include "bench/contestant.hpp"

#include <cmath>

namespace arenite::bench {
namespace {

class Gemm : public Contestant {
 public:
  explicit Gemm(int workers) : ceiling_(workers) {}

  void first_step() override { ceiling_.run(0); }
  Turn run(double seconds) override {
    const double rate = ceiling_.run(seconds) * 1e9;
    return {.samples = std::llround(rate * seconds), .seconds = seconds};
  }
  Json profile(double /*seconds*/) override { return {}; }
  std::string version() const override { return "LIBXSMM"; }
  std::string configuration() const override { return "a matrix product of its own on each core"; }

 private:
  GemmCeiling ceiling_;
};

}  // namespace

std::unique_ptr<Contestant> make_gemm(int workers) { return std::make_unique<Gemm>(workers); }

}  // namespace arenite::bench
