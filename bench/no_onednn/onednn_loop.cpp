// What the benchmarks say in a build without oneDNN.
#include "bench/onednn_loop.hpp"

#include <arenite/error.hpp>

namespace arenite::bench {

struct OnednnLoop::Impl {};

std::string onednn_version() { return ""; }

OnednnLoop::OnednnLoop(const data::Split& /*train*/, const Options& /*options*/) {
  fail({.found = "a build without oneDNN",
        .expected = "one with it",
        .hint = "install libdnnl-dev and configure again"});
}
OnednnLoop::~OnednnLoop() = default;

OnednnLoop::Part OnednnLoop::run(double /*seconds*/) { return {}; }

}  // namespace arenite::bench
