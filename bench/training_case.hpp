// One cell of the training tables: a network, a batch, a number of workers, ours or oneDNN's.
//
// Each runs in a process of its own, so that no engine's threads disturb the other's, on as many
// cores as it has workers: ours has a thread besides that submits, and must not have a core for it
// that the other lacks. `measure_apart` starts this program anew, and `measure` is what runs there.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace arenite::bench {

struct Case {
  std::string engine;  ///< "arenite" or "onednn"
  std::string network;
  std::int64_t batch = 64;
  int workers = 1;
  double seconds = 0.5;  ///< of measured training, roughly
};

/// {"samples_per_second": …, "loss": …, "lanes": …, "profile": {…}}. The loss is that of the last
/// epoch, to see that it was training. Only "arenite" has lanes and a profile (runtime::to_json),
/// which is taken when the rate is known.
nlohmann::json measure(const Case& what);

/// `measure` in a child process. Throws Failure with the status that the child ended with; what it
/// had to say went to our standard error.
nlohmann::json measure_apart(const Case& what);

}  // namespace arenite::bench
