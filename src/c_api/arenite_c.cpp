// Functions by their earlier names are more symbols of the same ones.
#define ARENITE_EARLIER_NAME(earlier, now) \
  ARENITE_API extern __typeof__(now) earlier __attribute__((alias(#now), nothrow))
#include <arenite/arenite.h>
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/step_json.hpp>
#include <arenite/runtime/program.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/refuse.hpp"
#include "src/c_api/handles.hpp"
#include "src/c_api/options.hpp"
#include "src/expr/formulas.hpp"

namespace {

using namespace arenite;
using namespace arenite::c_api;

static_assert(static_cast<int>(DType::float32) == ARENITE_FLOAT32);
static_assert(static_cast<int>(DType::float64) == ARENITE_FLOAT64);
static_assert(static_cast<int>(DType::int64) == ARENITE_INT64);
static_assert(static_cast<int>(DType::int32) == ARENITE_INT32);
static_assert(static_cast<int>(DType::uint8) == ARENITE_UINT8);
static_assert(Shape::max_rank == ARENITE_MAX_RANK);

/// The caller's `bytes` bytes of `data` for a state, or as many as it has.
std::span<const std::byte> bytes_of_state(Model& model, const char* name, const void* data,
                                          std::int64_t bytes) {
  const std::size_t size = model.state(&given(name, "the name")).size();
  check_state(name, size, data, bytes);
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace

const char* arenite_version(void) { return ARENITE_VERSION; }

const char* arenite_formulas(void) {
  static const std::string names = [] {
    std::string all;
    for (const expr::Formula& one : expr::formulas()) {
      if (one.is_operator) all += (all.empty() ? "" : " ") + std::string(one.name);
    }
    return all;
  }();
  return names.c_str();
}

void arenite_free(char* text) { std::free(text); }

arenite_status arenite_session_create(const arenite_session_options* options,
                                      arenite_session** session, char** message) {
  return run(message, [&] {
    arenite_session*& made = given(session, "the session's place");
    const char* const device = options == nullptr ? nullptr : options->device;
    if (device != nullptr && *device == '\0')
      refuse("an empty name of a device", "a name, such as cpu, or null");
    const int workers = options == nullptr ? 0 : options->workers;
    if (workers < 0) refuse(std::to_string(workers) + " workers", "0 or more");
    made = new arenite_session{std::make_shared<runtime::Session>(
        runtime::SessionOptions{.workers = workers, .device = device == nullptr ? "" : device})};
  });
}

void arenite_session_destroy(arenite_session* session) { delete session; }

int arenite_session_workers(const arenite_session* session) {
  return session == nullptr ? 0 : session->workers->workers();
}

arenite_status arenite_model_create(arenite_session* session, const char* script,
                                    const arenite_tensor* constants, size_t constant_count,
                                    const arenite_options* options, arenite_model** model,
                                    char** message) {
  return run(message, [&] {
    const auto& workers = given(session, "the session").workers;
    arenite_model*& made = given(model, "the model's place");
    std::vector<NamedBytes> named;
    read(constants, constant_count, named);
    graph::Graph graph = graph::parse(&given(script, "the script"), operators());
    const ModelOptions chosen = options != nullptr ? options->of_model : ModelOptions();
    made = new arenite_model{workers, Model(*workers, std::move(graph), named, chosen)};
  });
}

arenite_status arenite_options_create(arenite_options** options, char** message) {
  return run(message, [&] { make(options, "the options' place"); });
}

arenite_status arenite_options_set(arenite_options* options, const char* name, const char* value,
                                   char** message) {
  return run(message, [&] {
    ModelOptions& chosen = given(options, "the options").of_model;
    c_api::set_option(chosen, &given(name, "the name"), &given(value, "the value"));
  });
}

void arenite_options_free(arenite_options* options) { delete options; }

arenite_status arenite_model_close(arenite_model* model, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.close();
  });
}

void arenite_model_free(arenite_model* model) { delete model; }

size_t arenite_model_input_count(const arenite_model* model) {
  return model == nullptr ? 0 : model->model.inputs().size();
}
size_t arenite_model_output_count(const arenite_model* model) {
  return model == nullptr ? 0 : model->model.outputs().size();
}

arenite_status arenite_model_input(const arenite_model* model, size_t index, arenite_port* port,
                                   char** message) {
  return run(message, [&] {
    write(one_of(given(model, "the model").model.inputs(), index, "input"), port);
  });
}
arenite_status arenite_model_output(const arenite_model* model, size_t index, arenite_port* port,
                                    char** message) {
  return run(message, [&] {
    write(one_of(given(model, "the model").model.outputs(), index, "output"), port);
  });
}

arenite_status arenite_model_evaluate(arenite_model* model, const arenite_tensor* inputs,
                                      size_t input_count, void* const* outputs, size_t output_count,
                                      char** message) {
  return run(message, [&] {
    feed(model, "evaluate", nullptr, 0, inputs, input_count, outputs, output_count);
  });
}

arenite_status arenite_model_evaluate_averaged(arenite_model* model, const arenite_tensor* inputs,
                                               size_t input_count, void* const* outputs,
                                               size_t output_count, char** message) {
  return run(message, [&] {
    feed(model, "averaged", nullptr, 0, inputs, input_count, outputs, output_count);
  });
}

arenite_status arenite_model_run(arenite_model* model, const char* entry, const arenite_size* sizes,
                                 size_t size_count, const arenite_tensor* inputs,
                                 size_t input_count, void* const* outputs, size_t output_count,
                                 char** message) {
  return run(message, [&] {
    feed(model, &given(entry, "the entry"), sizes, size_count, inputs, input_count, outputs,
         output_count);
  });
}

arenite_status arenite_model_prepare(arenite_model* model, const arenite_size* sizes,
                                     size_t size_count, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    read(sizes, size_count, one.sizes);
    one.model.prepare(one.sizes);
  });
}

arenite_status arenite_model_output_at(const arenite_model* model, const char* entry, size_t index,
                                       const arenite_size* sizes, size_t size_count,
                                       arenite_port* port, char** message) {
  return run(message, [&] {
    graph::SizeValues named;
    read(sizes, size_count, named);
    const std::vector<Port> outputs =
        given(model, "the model").model.outputs_of(&given(entry, "the entry"), named);
    write(one_of(outputs, index, "output"), port);
    port->name = nullptr;
  });
}

int arenite_model_is_trainable(const arenite_model* model) {
  return model != nullptr && model->model.is_trainable() ? 1 : 0;
}

arenite_status arenite_model_train_step(arenite_model* model, const arenite_tensor* inputs,
                                        size_t input_count, void* const* outputs,
                                        size_t output_count, char** message) {
  return run(message,
             [&] { feed(model, "train", nullptr, 0, inputs, input_count, outputs, output_count); });
}

arenite_status arenite_model_learning_rate(const arenite_model* model, float* rate,
                                           char** message) {
  return run(message, [&] {
    const arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    given(rate, "the rate's place") = one.model.learning_rate();
  });
}

arenite_status arenite_model_set_learning_rate(arenite_model* model, float rate, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.set_learning_rate(rate);
  });
}

arenite_status arenite_model_untrained(const arenite_model* model, char** text, char** message) {
  return run(message, [&] {
    hand_over(lines_of(given(model, "the model").model.untrained()),
              given(text, "the text's place"));
  });
}

size_t arenite_model_state_count(const arenite_model* model) {
  return model == nullptr ? 0 : model->model.states().size();
}

arenite_status arenite_model_state(const arenite_model* model, size_t index, arenite_port* port,
                                   arenite_state_kind* kind, char** message) {
  return run(message, [&] {
    const auto& states = given(model, "the model").model.states();
    const StatePort& state = one_of(states, index, "state");
    arenite_state_kind& to = given(kind, "the kind's place");
    write(state, port);
    to = kind_of(state.cls);
  });
}

arenite_status arenite_model_get_state(const arenite_model* model, const char* name, void* data,
                                       int64_t bytes, char** message) {
  return run(message, [&] {
    const arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    bytes_of_state(one.model, name, data, bytes);
    std::ranges::copy(one.model.state(name), static_cast<std::byte*>(data));
  });
}

arenite_status arenite_model_set_state(arenite_model* model, const char* name, const void* data,
                                       int64_t bytes, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.set_state(name, bytes_of_state(one.model, name, data, bytes));
  });
}

arenite_status arenite_model_save(const arenite_model* model, const char* path, char** message) {
  return run(message, [&] {
    const arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.save(&given(path, "the path"));
  });
}

arenite_status arenite_model_load(arenite_model* model, const char* path, char** message) {
  return run(message, [&] {
    arenite_model& one = given(model, "the model");
    const std::lock_guard lock(one.one_at_a_time);
    one.model.load(&given(path, "the path"));
  });
}

arenite_status arenite_model_save_with(const arenite_model* model, const char* path,
                                       const char* name, const char* text, char** message) {
  return run(message, [&] {
    const arenite_model& one = given(model, "the model");
    const SavedWords said{{&given(name, "the name"), &given(text, "the text")}};
    const std::lock_guard lock(one.one_at_a_time);
    one.model.save(&given(path, "the path"), said);
  });
}

arenite_status arenite_saved_text(const char* path, const char* name, char** text, char** message) {
  return run(message, [&] {
    char*& place = given(text, "the text's place");
    place = nullptr;
    const std::string_view wanted = &given(name, "the name");
    for (const auto& [one, its] : saved_words(&given(path, "the path"))) {
      if (one == wanted) return hand_over(its, place);
    }
  });
}

arenite_status arenite_model_memory(const arenite_model* model, arenite_memory* memory,
                                    char** message) {
  return run(message, [&] {
    given(memory, "the memory's place") = memory_of(given(model, "the model").model.plan());
  });
}

arenite_status arenite_model_plan(const arenite_model* model, char** json, char** message) {
  return run(message, [&] {
    hand_over(plan::to_json(given(model, "the model").model.plan()),
              given(json, "the plan's place"));
  });
}

arenite_status arenite_model_picture(const arenite_model* model, char** svg, char** message) {
  return run(message, [&] {
    const plan::Plan plan = plan::whole_plan(given(model, "the model").model.plan());
    hand_over(plan::to_svg(plan), given(svg, "the picture's place"));
  });
}

arenite_status arenite_model_copies(const arenite_model* model, char** text, char** message) {
  return run(message, [&] {
    hand_over(lines_of(given(model, "the model").model.copies()), given(text, "the text's place"));
  });
}

arenite_status arenite_compile(arenite_session* session, const char* script,
                               const arenite_tensor* constants, size_t constant_count,
                               arenite_model** model, char** message) {
  return arenite_model_create(session, script, constants, constant_count, nullptr, model, message);
}
