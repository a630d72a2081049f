// Models whose scripts leave sizes open: their programs by entry and sizes.
#include "src/c_api/handles.hpp"

#include "src/base/json.hpp"

#include <array>

namespace {

using namespace arenite;
using namespace arenite::c_api;

struct Entry {
  std::string_view name;
  Step run;
};

constexpr std::array entries{Entry{"evaluate", &Model::evaluate},
                             Entry{"averaged", &Model::evaluate_averaged},
                             Entry{"train", &Model::train_step}};

const Entry& entry_of(std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  if (found == entries.end())
    refuse("entry '" + std::string(name) + "'", "evaluate, averaged or train");
  return *found;
}

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
    feed(model, entry_of(&given(entry, "the entry")).run, sizes, size_count, inputs, input_count,
         outputs, output_count);
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

arenite_status arenite_output_at(const arenite_model* model, size_t index,
                                 const arenite_size* sizes, size_t size_count, arenite_port* port,
                                 char** message) {
  return run(message, [&] {
    const Model& one = given(model, "the model").model;
    const Port& name = one_of(one.outputs(), index, "output");
    graph::SizeValues named;
    read(sizes, size_count, named);
    write(one.outputs(named)[index], port);
    port->name = name.name.c_str();  // which stays
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
