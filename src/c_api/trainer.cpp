// Whole runs: what trainer.h has.
#include <arenite/trainer.h>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/step_json.hpp>
#include <arenite/train/saved_run.hpp>
#include <arenite/train/script.hpp>
#include <arenite/train/trainer.hpp>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/c_api/handles.hpp"
#include "src/c_api/options.hpp"

struct arenite_trainer_options {
  arenite::c_api::TrainingOptions all;
};

struct arenite_trainer {
  std::shared_ptr<arenite::runtime::Session> workers;  // as long as the trainer needs them
  mutable arenite::train::Trainer trainer;
  const std::vector<arenite::Port> inputs = trainer.inputs();
  std::vector<arenite::StatePort> states = trainer.states();
  const std::vector<std::string> metrics = trainer.metrics();
  arenite::train::Event event{};  // that the caller looks at
  // A network that is asked for may read what the trainer keeps.
  mutable std::recursive_mutex one_at_a_time{};
};

namespace {

using namespace arenite;
using namespace arenite::c_api;

Column column_of(const arenite_column& from) {
  const int type = static_cast<int>(from.type);
  const std::string name = &given(from.input, "a column's input");
  if (type < ARENITE_FLOAT32 || type > ARENITE_UINT8 || from.rank < 0 ||
      from.rank > ARENITE_MAX_RANK) {
    refuse("column '" + name + "' of type " + std::to_string(type) + " and rank " +
               std::to_string(from.rank),
           "one of arenite_type, and a rank of 0 to 8");
  }
  if (from.rank > 0) given(from.shape, "a column's shape");
  return {.input = name,
          .data = from.data,
          .type = static_cast<DType>(type),
          .shape = Shape(std::span(from.shape, static_cast<std::size_t>(from.rank))),
          .scale = from.scale == 0 ? 1 : from.scale};
}

Samples samples_of(const arenite_column* columns, std::size_t count) {
  Samples samples;
  if (count > 0) given(columns, "the columns");
  for (std::size_t i = 0; i < count; ++i) samples.columns.push_back(column_of(columns[i]));
  return samples;
}

train::Weights weights_of(arenite_weights weights) {
  const int given = static_cast<int>(weights);
  if (given == ARENITE_AVERAGED) return train::Weights::averaged;
  if (given == ARENITE_CURRENT) return train::Weights::current;
  refuse("weights " + std::to_string(given), "one of arenite_weights");
}

template <class Action>
arenite_status with(const arenite_trainer* trainer, char** message, Action action) {
  return run(message, [&] {
    const arenite_trainer& one = given(trainer, "the trainer");
    const std::lock_guard lock(one.one_at_a_time);
    action(one.trainer);
  });
}

/// Room for all metrics, or for none where nobody asks.
void check_room(const arenite_trainer& trainer, const double* metrics, std::size_t room,
                bool is_optional) {
  if (is_optional && metrics == nullptr && room == 0) return;
  if (room < trainer.metrics.size()) {
    refuse("room for " + std::to_string(room) + " metrics", std::to_string(trainer.metrics.size()));
  }
  given(metrics, "the metrics' place");
}

arenite_event event_of(const arenite_trainer& trainer) {
  const train::Event& event = trainer.event;
  const auto numbers = [](const train::Metrics& metrics) { return metrics.values.data(); };
  const auto& validation = event.report.validation;
  const bool ended = !event;
  return {.kind = event.kind == train::Event::Kind::progress ? ARENITE_PROGRESS
                  : ended                                    ? ARENITE_ENDED
                                                             : ARENITE_EPOCH,
          .epoch = event.progress.epoch,
          .epochs = event.progress.epochs,
          .done = event.progress.done,
          .total = event.progress.total,
          .seconds = event.progress.seconds,
          .metrics = ended ? nullptr : numbers(event.report.train),
          .validation = validation ? numbers(*validation) : nullptr,
          .is_best = event.report.best ? 1 : 0};
}

arenite_trainer* created(const std::shared_ptr<runtime::Session>& workers, train::Script network,
                         train::TrainerOptions options) {
  options.optimizer = std::move(network.optimizer);
  return new arenite_trainer{workers, train::Trainer(*workers, network.build, options)};
}

}  // namespace

arenite_status arenite_trainer_options_create(arenite_trainer_options** options, char** message) {
  return run(message, [&] { make(options, "the options' place"); });
}

arenite_status arenite_trainer_options_set(arenite_trainer_options* options, const char* name,
                                           const char* value, char** message) {
  return run(message, [&] {
    TrainingOptions& chosen = given(options, "the options").all;
    set_option(chosen, &given(name, "the name"), &given(value, "the value"));
  });
}

void arenite_trainer_options_free(arenite_trainer_options* options) { delete options; }

arenite_status arenite_trainer_create(arenite_session* session, const char* script,
                                      const arenite_trainer_options* options,
                                      arenite_trainer** trainer, char** message) {
  return run(message, [&] {
    const auto& workers = given(session, "the session").workers;
    arenite_trainer*& made = given(trainer, "the trainer's place");
    train::Script network = train::read_script(&given(script, "the script"));
    train::TrainerOptions chosen = options ? options->all.of_trainer : train::TrainerOptions();
    if (options == nullptr || !options->all.has_batch)
      chosen.batch = std::min(chosen.batch, network.most);
    made = created(workers, std::move(network), chosen);
  });
}

arenite_status arenite_trainer_create_sized(arenite_session* session, arenite_script_for script,
                                            void* context, const arenite_trainer_options* options,
                                            arenite_trainer** trainer, char** message) {
  return run(message, [&] {
    const auto& workers = given(session, "the session").workers;
    arenite_trainer*& made = given(trainer, "the trainer's place");
    if (script == nullptr) refuse("null for the scripts' function", "a function");
    const auto text_for = [script, context](std::int64_t samples) {
      const char* const text = script(context, samples);
      if (text != nullptr) return std::string(text);
      refuse("no script for " + std::to_string(samples) + " samples", "a text");
    };
    const train::TrainerOptions chosen =
        options ? options->all.of_trainer : train::TrainerOptions();
    made =
        created(workers, train::read_scripts(text_for, chosen.batch * chosen.accumulate), chosen);
  });
}

arenite_status arenite_trainer_open(arenite_session* session, const char* path,
                                    arenite_trainer** trainer, char** message) {
  return run(message, [&] {
    const auto& workers = given(session, "the session").workers;
    arenite_trainer*& place = given(trainer, "the trainer's place");
    const std::string file = &given(path, "the path");
    const train::SavedRun saved = train::saved_run(file);
    auto made = std::unique_ptr<arenite_trainer>(new arenite_trainer{
        workers, train::Trainer(*workers, saved.build, train::options_on(saved, *workers))});
    made->trainer.take_states(file);
    made->states = made->trainer.states();
    place = made.release();
  });
}

void arenite_trainer_free(arenite_trainer* trainer) { delete trainer; }

size_t arenite_trainer_input_count(const arenite_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->inputs.size();
}

arenite_status arenite_trainer_input(const arenite_trainer* trainer, size_t index,
                                     arenite_port* port, char** message) {
  return run(message,
             [&] { write(one_of(given(trainer, "the trainer").inputs, index, "input"), port); });
}

arenite_status arenite_trainer_prediction(arenite_trainer* trainer, arenite_port* port,
                                          char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    write({.name = {},
           .type = one.type_of_predictions(),
           .shape = one.shape_of_predictions(one.batch())},
          port);
    port->name = nullptr;
  });
}

size_t arenite_trainer_metric_count(const arenite_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->metrics.size();
}

const char* arenite_trainer_metric_name(const arenite_trainer* trainer, size_t index) {
  return index < arenite_trainer_metric_count(trainer) ? trainer->metrics[index].c_str() : nullptr;
}

arenite_status arenite_trainer_begin(arenite_trainer* trainer, const arenite_column* samples,
                                     size_t count, const arenite_column* validation,
                                     size_t validation_count,
                                     const arenite_trainer_options* options, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    const Samples tested = samples_of(validation, validation_count);
    train::FitOptions how = options ? options->all.of_fit : train::FitOptions();
    if (validation_count > 0) how.validation = &tested;
    one.begin(samples_of(samples, count), how);
  });
}

arenite_status arenite_trainer_advance(arenite_trainer* trainer, int64_t steps, double seconds,
                                       arenite_event* event, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    arenite_event& place = given(event, "the event's place");
    trainer->event = one.advance({.steps = static_cast<long>(steps), .seconds = seconds});
    place = event_of(*trainer);
  });
}

arenite_status arenite_trainer_step(arenite_trainer* trainer, const arenite_column* batch,
                                    size_t count, double* metrics, size_t room, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    check_room(*trainer, metrics, room, true);
    const train::Metrics found = one.step(samples_of(batch, count));
    if (room > 0) std::copy_n(found.values.begin(), trainer->metrics.size(), metrics);
  });
}

arenite_status arenite_trainer_evaluate(arenite_trainer* trainer, const arenite_column* samples,
                                        size_t count, arenite_weights weights, double* metrics,
                                        size_t room, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    check_room(*trainer, metrics, room, false);
    const train::Metrics found = one.evaluate(samples_of(samples, count), weights_of(weights));
    std::copy_n(found.values.begin(), trainer->metrics.size(), metrics);
  });
}

arenite_status arenite_trainer_predict(arenite_trainer* trainer, const arenite_column* samples,
                                       size_t count, arenite_weights weights, void* into,
                                       int64_t bytes, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    const Samples asked = samples_of(samples, count);
    if (bytes == ARENITE_UNKNOWN_BYTES) {
      bytes =
          one.shape_of_predictions(asked.count()).elements() * size_of(one.type_of_predictions());
    }
    if (bytes < 0) refuse(std::to_string(bytes) + " bytes for predictions", "0 or more");
    if (into == nullptr && bytes > 0) refuse("null for the predictions' place", "a pointer");
    one.predict(asked, {static_cast<std::byte*>(into), static_cast<std::size_t>(bytes)},
                weights_of(weights));
  });
}

arenite_status arenite_trainer_release(arenite_trainer* trainer, const arenite_column* samples,
                                       size_t count, char** message) {
  return with(trainer, message,
              [&](train::Trainer& one) { one.release(samples_of(samples, count)); });
}

int64_t arenite_trainer_steps(const arenite_trainer* trainer) {
  if (trainer == nullptr) return 0;
  const std::lock_guard lock(trainer->one_at_a_time);
  return trainer->trainer.steps();
}
int arenite_trainer_epochs(const arenite_trainer* trainer) {
  if (trainer == nullptr) return 0;
  const std::lock_guard lock(trainer->one_at_a_time);
  return trainer->trainer.epochs();
}

size_t arenite_trainer_state_count(const arenite_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->states.size();
}

arenite_status arenite_trainer_state(const arenite_trainer* trainer, size_t index,
                                     arenite_port* port, arenite_state_kind* kind, char** message) {
  return run(message, [&] {
    const StatePort& state = one_of(given(trainer, "the trainer").states, index, "state");
    arenite_state_kind& to = given(kind, "the kind's place");
    write(state, port);
    to = kind_of(state.cls);
  });
}

arenite_status arenite_trainer_get_state(arenite_trainer* trainer, const char* name, void* data,
                                         int64_t bytes, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    const auto found = one.state(&given(name, "the name"));
    check_state(name, found.size(), data, bytes);
    std::ranges::copy(found, static_cast<std::byte*>(data));
  });
}

arenite_status arenite_trainer_set_state(arenite_trainer* trainer, const char* name,
                                         const void* data, int64_t bytes, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    const std::string wanted = &given(name, "the name");
    const auto known = std::ranges::find(trainer->states, wanted, &StatePort::name);
    const std::size_t size =
        known == trainer->states.end() ? 0 : static_cast<std::size_t>(known->bytes());
    if (size > 0) check_state(name, size, data, bytes);
    one.set_state(wanted, {static_cast<const std::byte*>(data), size});
  });
}

arenite_status arenite_trainer_learning_rate(arenite_trainer* trainer, float* rate,
                                             char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    given(rate, "the learning rate's place") = one.learning_rate();
  });
}

arenite_status arenite_trainer_set_learning_rate(arenite_trainer* trainer, float rate,
                                                 char** message) {
  return with(trainer, message, [&](train::Trainer& one) { one.set_learning_rate(rate); });
}

arenite_status arenite_trainer_weights_sha256(arenite_trainer* trainer, char** text,
                                              char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    hand_over(one.weights_sha256(), given(text, "the text's place"));
  });
}

arenite_status arenite_trainer_save(arenite_trainer* trainer, const char* path, char** message) {
  return with(trainer, message, [&](train::Trainer& one) { one.save(&given(path, "the path")); });
}

arenite_status arenite_trainer_save_with(arenite_trainer* trainer, const char* path,
                                         const char* name, const char* text, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    one.save(&given(path, "the path"), {{&given(name, "the name"), &given(text, "the text")}});
  });
}

arenite_status arenite_trainer_resume(arenite_trainer* trainer, const char* path, char** differs,
                                      char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    const std::string text = one.resume(&given(path, "the path"));
    trainer->states = one.states();
    if (differs != nullptr) hand_over(text, *differs);
  });
}

arenite_status arenite_trainer_take_weights(arenite_trainer* trainer, const char* path,
                                            char** message) {
  return with(trainer, message,
              [&](train::Trainer& one) { one.take_weights(&given(path, "the path")); });
}

arenite_status arenite_trainer_take_over(arenite_trainer* trainer, arenite_trainer* before,
                                         char** message) {
  return run(message, [&] {
    arenite_trainer &one = given(trainer, "the trainer"),
                    &other = given(before, "the trainer before it");
    if (&one == &other) refuse("a trainer that takes over from itself", "two of them");
    const std::scoped_lock lock(one.one_at_a_time, other.one_at_a_time);
    one.trainer.take_over(other.trainer);
    one.states = one.trainer.states();
  });
}

arenite_status arenite_trainer_untrained(const arenite_trainer* trainer, char** text,
                                         char** message) {
  return with(trainer, message, [&](const train::Trainer& one) {
    hand_over(lines_of(one.untrained()), given(text, "the text's place"));
  });
}

arenite_status arenite_trainer_memory(const arenite_trainer* trainer, arenite_memory* memory,
                                      char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    given(memory, "the memory's place") = memory_of(one.step_plan());
  });
}

arenite_status arenite_trainer_plan(const arenite_trainer* trainer, char** json, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    hand_over(plan::to_json(one.step_plan()), given(json, "the plan's place"));
  });
}

arenite_status arenite_trainer_picture(const arenite_trainer* trainer, char** svg, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    hand_over(plan::to_svg(plan::whole_plan(one.step_plan())), given(svg, "the picture's place"));
  });
}

arenite_status arenite_trainer_table(const arenite_trainer* trainer, char** text, char** message) {
  return with(trainer, message, [&](train::Trainer& one) {
    std::ostringstream table;
    table << one.plan();
    hand_over(table.str(), given(text, "the text's place"));
  });
}
