// Compiles scripts as C++ does, all constants and parameters zeros, and prints the JSON of each
// model's plan, a line each. Usage: model_plans SCRIPT…
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_json.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  arenite::runtime::Session session({.workers = 1});
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    arenite::graph::Graph graph = arenite::graph::parse(text, arenite::operators(), argv[i]);
    std::vector<arenite::NamedBytes> constants;
    std::size_t most = 1;
    for (std::size_t v = 0; v < graph.value_count(); ++v) {
      const auto& value = graph[arenite::graph::ValueId(v)];
      if (!value.is_declared() ||
          graph.storage(value.storage).cls != arenite::graph::StorageClass::constant)
        continue;
      constants.push_back({.name = value.name});
      most = std::max(most,
                      static_cast<std::size_t>(arenite::graph::byte_size(value.type, value.shape)));
    }
    const std::vector<std::byte> zeros(most);
    for (arenite::NamedBytes& constant : constants) constant.data = zeros.data();
    const arenite::Model model(session, std::move(graph), constants);
    std::string plan = arenite::plan::to_json(model.plan());
    std::erase(plan, '\n');
    std::cout << plan << '\n';
  }
  return 0;
} catch (const arenite::Error& error) {
  std::cerr << "model_plans: " << error.what() << '\n';
  return 1;
}
