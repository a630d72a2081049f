#include "src/model/ports.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "src/base/refuse.hpp"

namespace arenite {

using graph::StorageClass;

Port port_of(const graph::Value& value) {
  return {value.name, value.type, value.shape, value.size_names};
}

std::string names_of(const std::vector<Port>& ports) {
  std::string names;
  for (const Port& port : ports) names += (names.empty() ? "" : ", ") + port.name;
  return names.empty() ? "none" : names;
}

void match(const std::vector<Port>& ports, std::span<const NamedBytes> given, const char* what,
           std::size_t needed, std::vector<const NamedBytes*>& matched) {
  matched.assign(ports.size(), nullptr);
  for (const NamedBytes& bytes : given) {
    const auto port = std::ranges::find(ports, bytes.name, &Port::name);
    if (port == ports.end()) {
      refuse(std::string("an unknown ") + what + " '" + std::string(bytes.name) + "'",
             names_of(ports));
    }
    const NamedBytes*& slot = matched[static_cast<std::size_t>(port - ports.begin())];
    if (slot != nullptr) {
      refuse(std::string(what) + " '" + port->name + "' twice",
             std::string("each ") + what + " once");
    }
    if (bytes.data == nullptr && port->bytes() > 0) {
      refuse(std::string("null for the bytes of ") + what + " '" + port->name + "'",
             std::to_string(port->bytes()) + " bytes");
    }
    if (bytes.bytes && *bytes.bytes != port->bytes()) {
      refuse(
          std::to_string(*bytes.bytes) + " bytes of " + std::string(what) + " '" + port->name + "'",
          std::to_string(port->bytes()) + ", as it is " + std::string(to_string(port->type)) + " " +
              to_string(port->shape));
    }
    slot = &bytes;
  }
  for (std::size_t i = 0; i < needed; ++i) {
    if (matched[i] != nullptr) continue;
    refuse(std::string("no ") + what + " '" + ports[i].name + "'",
           "all of " + names_of({ports.begin(), ports.begin() + needed}));
  }
}

std::vector<Port> ports_of(const graph::Graph& graph, StorageClass cls) {
  std::vector<Port> ports;
  for (const graph::ValueId id : graph.declared(cls)) ports.push_back(port_of(graph[id]));
  return ports;
}

std::vector<Kept> kept_of(const graph::Graph& graph, const std::vector<Port>& constants) {
  std::vector<Kept> kept;
  std::unordered_set<std::string> taken;
  for (const Port& constant : constants) taken.insert(constant.name);
  for (const StorageClass cls :
       {StorageClass::parameter, StorageClass::optimizer_state, StorageClass::buffer}) {
    for (Port& port : ports_of(graph, cls)) {
      std::string own = port.name;
      while (!taken.insert(port.name).second)
        port.name = std::string(to_string(cls)) + "/" + port.name;
      kept.push_back({{std::move(port), cls}, std::move(own)});
    }
  }
  return kept;
}

}  // namespace arenite
