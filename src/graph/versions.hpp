// New versions of what buffers hold: whose they are, and that each is replaced once.
#pragma once

#include <arenite/graph/graph.hpp>

#include <map>
#include <vector>

namespace arenite::graph {

class Versions {
 public:
  /// Throws Flaw on two new versions of the same bytes of one version, and on one made in a block
  /// of a buffer from outside.
  explicit Versions(const Graph& graph);

  /// The ops of the body that make new versions of a buffer, or of a view of one.
  const std::vector<OpId>& ops() const noexcept { return ops_; }

 private:
  /// Where in a buffer a version of some of its bytes belongs.
  struct Place {
    StorageId buffer;
    std::int64_t offset = 0;
  };
  struct Update {
    std::int64_t end = 0;
    OpId op;
  };
  /// Of one version, by the first byte; none overlaps another.
  using Updates = std::map<std::int64_t, Update>;

  bool find(ValueId value, Place& place) const;
  void note(OpId id);
  void refuse_in_blocks() const;

  const Graph& graph_;
  std::map<StorageId, Place> places_;     ///< by the storage of a new version
  std::map<StorageId, Updates> updates_;  ///< by that of the old version
  std::vector<OpId> ops_;
};

}  // namespace arenite::graph
