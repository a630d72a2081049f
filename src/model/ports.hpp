// What goes into a model, comes out of it and is kept by it: names, types, bytes.
#pragma once

#include <arenite/model.hpp>

#include <span>
#include <string>
#include <vector>

namespace arenite {

Port port_of(const graph::Value& value);
std::vector<Port> ports_of(const graph::Graph& graph, graph::StorageClass cls);
/// "image, label", or "none".
std::string names_of(const std::vector<Port>& ports);

/// For each port its bytes, which are given under its name; the first `needed` must be there.
/// Allocates nothing the second time. Throws Error, which calls a port a `what`.
void match(const std::vector<Port>& ports, std::span<const NamedBytes> given, const char* what,
           std::size_t needed, std::vector<const NamedBytes*>& matched);

struct Kept {
  StatePort port;
  std::string own;  ///< its name within its class
};

/// What persists of a graph, under names that no other and no constant has.
std::vector<Kept> kept_of(const graph::Graph& graph, const std::vector<Port>& constants);

}  // namespace arenite
