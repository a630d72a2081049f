// What a run says of itself in a file, so that another one can go on where it was.
#pragma once

#include <arenite/samples.hpp>

#include "src/base/json.hpp"
#include "src/io/safetensors.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace arenite::train {

/// By name, in the order in which they are said.
using Facts = std::vector<std::pair<std::string, std::string>>;

Json json_of(const Facts& facts);  ///< an object

/// How far a run is.
struct RunPlace {
  long steps = 0;
  std::int64_t drawn = 0;    ///< samples, by all steps of training
  int epochs = 0;            ///< done
  std::int64_t done = 0;     ///< samples of the next one
  double seconds = 0;        ///< that these took
  std::vector<double> sums;  ///< of these: what the network's metrics add up
  /// Of a validation; NaN: there was none that is a number.
  double best_loss = std::numeric_limits<double>::quiet_NaN();
  int validations = 0, since = 0;  ///< how many there were; and since the best one

  /// No sample of the next epoch is done.
  void begin_epoch() {
    done = 0;
    seconds = 0;
    sums.clear();
  }

  friend bool operator==(const RunPlace&, const RunPlace&) = default;
};

/// What epochs go over, and how.
struct Epochs {
  const Samples* samples;
  bool shuffle = true;
  std::uint64_t seed = 1;

  friend bool operator==(const Epochs& a, const Epochs& b) {
    return *a.samples == *b.samples && a.shuffle == b.shuffle && a.seed == b.seed;
  }
};

/// The same for equal bytes in equal order.
Facts facts_of(const Epochs& epochs);

// Names in a file's metadata: of a network, as a script; and of what was asked of the compiler.
inline constexpr const char *script_name = "arenite.script", *asked_name = "arenite.asked";

struct Checkpoint {
  Facts identity;  ///< what a run has to have in common with one that it goes on with
  Facts numerics;  ///< what decides the bits besides
  RunPlace place;
};

io::Metadata metadata_of(const Checkpoint& checkpoint);
/// Whether it says that it is one.
bool is_checkpoint(const io::TensorFile& file);
/// Throws Error where the file, which `where` calls so, says nothing of a run, or what is none.
Checkpoint checkpoint_of(const io::TensorFile& file, const std::string& where);

/// Throws Error that names what differs among these facts, all of which the other run has to have.
void expect_same(const Facts& ours, const Facts& theirs, const std::string& where);
/// "version 0.2 for 0.1, lanes 2 for 4"; empty where nothing differs.
std::string differences(const Facts& ours, const Facts& theirs);

}  // namespace arenite::train
