// Models whose scripts leave sizes open: their programs by entry and sizes.
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

arenite_status arenite_run(arenite_model* model, const char* entry, const arenite_size* sizes,
                           size_t size_count, const arenite_tensor* inputs, size_t input_count,
                           void* const* outputs, size_t output_count, char** message) {
  return run(message, [&] {
    feed(model, &given(entry, "the entry"), sizes, size_count, inputs, input_count, outputs,
         output_count);
  });
}

arenite_status arenite_prepare(arenite_model* model, const arenite_size* sizes, size_t size_count,
                               char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    read(sizes, size_count, one.sizes);
    one.model.prepare(one.sizes);
  });
}

arenite_status arenite_output_at(const arenite_model* model, const char* entry, size_t index,
                                 const arenite_size* sizes, size_t size_count, arenite_port* port,
                                 char** message) {
  return run(message, [&] {
    graph::SizeValues named;
    read(sizes, size_count, named);
    const std::vector<Port> outputs =
        given(model, "the model").model.outputs_of(&given(entry, "the entry"), named);
    write(one_of(outputs, index, "output"), port);
    port->name = nullptr;
  });
}

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

arenite_status arenite_model_close(arenite_model* model, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.close();
  });
}
