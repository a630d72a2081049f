// What passes say of their work, for people: what they did, and what they left as it was, and why.
#pragma once

#include <string>
#include <vector>

namespace arenite::graph {

/// Collected only where somebody asks: passes take a pointer that may be null, and put no text
/// together without one.
struct Remarks {
  struct Remark {
    std::string what;  ///< "dense 'dense1', relu 'relu3'"
    std::string why;   ///< of what was left, the first reason; of what was done, what it became

    friend bool operator==(const Remark&, const Remark&) = default;
  };
  std::vector<Remark> done, left;  ///< in the order of the program
};

}  // namespace arenite::graph
