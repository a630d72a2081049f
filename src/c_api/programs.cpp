// What a model has built, by entry and sizes, as JSON.
#include "src/c_api/handles.hpp"

#include "src/base/json.hpp"

namespace {

using namespace arenite;
using namespace arenite::c_api;

Json json_of(const graph::SizeValues& sizes) {
  Json all = Json::object();
  for (const auto& [name, size] : sizes) all[name] = size;
  return all;
}

}  // namespace

arenite_status arenite_model_programs(const arenite_model* model, char** json, char** message) {
  return run(message, [&] {
    const arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    Json all = Json::object();
    all["sizes"] = Json::object();
    for (const auto& [name, bound] : one.model.open_sizes()) all["sizes"][name] = bound;
    all["inputs"] = Json::object();
    for (const Port& port : one.model.inputs())
      if (!port.size_names.empty()) all["inputs"][port.name] = port.size_names;
    all["entries"] = Json::list();
    for (const std::string& entry : one.model.entries()) {
      Json inputs = Json::list(), outputs = Json::list();
      for (const Port& port : one.model.inputs_of(entry)) inputs.push_back(port.name);
      for (const Port& port : one.model.outputs_of(entry)) outputs.push_back(port.name);
      all["entries"].push_back({{"name", entry}, {"inputs", inputs}, {"outputs", outputs}});
    }
    all["programs"] = Json::list();
    for (const ModelProgram& program : one.model.programs()) {
      all["programs"].push_back({{"entry", program.entry},
                                 {"sizes", json_of(program.sizes)},
                                 {"arena_bytes", program.arena_bytes},
                                 {"fit", program.fit},
                                 {"milliseconds", program.milliseconds},
                                 {"runs", program.runs}});
    }
    hand_over(all.dump(), given(json, "the place of the text"));
  });
}
