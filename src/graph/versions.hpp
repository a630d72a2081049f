// New versions of what persists: whose they are, and that each is replaced once.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace arenite::graph {

/// Calls f(result, operand) for each result that is a new version of an operand, by their indices.
template <class F>
void for_each_renewed(const Op& op, const F& f) {
  const auto renews = [&](std::size_t i) {
    return op.operands[i] && op.definition->operand_schema(i).renews != Renews::nothing;
  };
  std::size_t result = op.results.size();
  for (std::size_t i = 0; i < op.operands.size(); ++i) result -= renews(i) ? 1 : 0;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (renews(i)) f(result++, i);
  }
}

/// The operand that the result is a new version of, if it is one.
std::optional<std::size_t> renewed_operand(const Op& op, std::size_t result);

/// Pairs (result, operand): the result may lie in the operand's bytes, which is there. Their
/// elements are of one size: else one would overwrite others.
std::vector<std::pair<std::size_t, std::size_t>> pairs_in_place(const Graph& graph, const Op& op);

/// True where all results of the op are new versions, and there are any.
bool only_renews(const Op& op);

/// An op's result that is a new version of a parameter, an optimizer state or a buffer, or of some
/// of its bytes.
struct Version {
  OpId op;
  std::size_t result = 0, operand = 0;  ///< by their indices
};

class Versions {
 public:
  /// Throws Flaw on two new versions of the same bytes of one version, of which the later is not
  /// made of the earlier, and on one made in a block of what lies outside.
  explicit Versions(const Graph& graph);

  /// Those of the body, in program order, but for versions that a later one is made of and takes
  /// the place of.
  const std::vector<Version>& all() const noexcept { return all_; }

 private:
  /// Where in what persists a version of some of its bytes belongs.
  struct Place {
    StorageId storage;
    std::int64_t offset = 0;
  };
  struct Made {
    Place place;
    OpId op;
    StorageId old;          ///< of the version before
    std::size_t index = 0;  ///< in all_
  };
  struct Update {
    std::int64_t end = 0;
    Version by;
  };
  /// Of one version, by the first byte; none overlaps another.
  using Updates = std::map<std::int64_t, Update>;

  bool find(const Version& version, Place& place) const;
  void note(const Version& version);
  bool supersede(StorageId version, const Version& by);
  void replace(Updates& others, std::int64_t begin, std::int64_t end, const Version& by);
  bool handed_out(RegionId region, StorageId storage) const;
  void refuse_in_blocks() const;

  const Graph& graph_;
  std::map<StorageId, Made> made_;        ///< by the storage of a new version
  std::map<StorageId, Updates> updates_;  ///< by that of the old version
  std::vector<Version> all_;
};

}  // namespace arenite::graph
