// Who still looks at the bytes of a value when a new version of it is there.
#pragma once

#include <arenite/graph/graph.hpp>

#include <map>
#include <string>
#include <vector>

namespace arenite::graph {

/// True where some byte belongs to both.
bool share_bytes(const Graph& graph, ValueId a, ValueId b);

class OldReaders {
 public:
  /// In the body or a block: what lies outside is not looked at.
  explicit OldReaders(const Graph& graph, RegionId region = Graph::body);

  /// What keeps an op of the region from making a new version of `old`, an operand, in its bytes,
  /// as far as readers go: "relu 'conv1' reads the old version later", …; empty where nothing does.
  /// `ignored`: ops that do not count.
  std::string obstacle(OpId id, ValueId old, const std::vector<bool>& ignored = {}) const;

  /// Values of one storage lie in another one now.
  void move(StorageId from, StorageId into);

 private:
  struct Use {
    ValueId value;
    OpId op;  ///< none: whoever takes the region's results
  };

  void add(std::size_t position, const Use& use);
  std::string text(const Op& made_by, const Use& use) const;

  const Graph& graph_;
  const RegionId region_;
  std::vector<std::size_t> position_;                  // by op of the region
  std::vector<std::multimap<std::size_t, Use>> uses_;  // by root storage and position
};

}  // namespace arenite::graph
