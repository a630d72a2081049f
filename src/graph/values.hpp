// Values as builder and passes add them: what they are called, and of which class they are, unless
// someone says otherwise. The text form leaves that out.
#pragma once

#include <arenite/graph/operator.hpp>

#include <string>
#include <vector>

namespace arenite::graph {

/// Name of an op's i-th of `count` results unless someone renames it.
std::string result_name(const Op& op, std::size_t i, std::size_t count);
/// Name of the i-th parameter of an op's region unless someone renames it.
std::string parameter_name(const Op& op, std::size_t i);
/// Name of an op's workspace unless someone renames it.
std::string workspace_name(const Op& op);
/// Class of what an op of this phase produces, unless someone says otherwise.
StorageClass result_class(Phase phase) noexcept;

/// Whether an op of phase `reader` may read what one of phase `maker` makes.
bool may_read(Phase reader, Phase maker) noexcept;

/// Adds a value with a storage of its own, which has its name and its bytes.
ValueId add_with_storage(Graph& graph, Value value, StorageClass cls, const Space& space = {});
/// Gives an op scratch bytes.
void add_workspace(Graph& graph, OpId id, std::int64_t bytes, const Space& space = {});

/// The shape to which values are repeated that line up at their last axes: along axes where their
/// size is 1, and along axes in front that they lack. Those that are none count for nothing.
Shape joint_shape(const Graph& graph, const std::vector<ValueId>& values);

/// What is declared, in the order of ids.
std::vector<ValueId> declared_values(const Graph& graph);

}  // namespace arenite::graph
