#include "src/cli/commands.hpp"

namespace arenite::cli {

void add_commands(Command& app, Arguments& a) {
  add_train_options(app, a.train)->run = [&] { return run_train(a.train); };
  add_evaluate_options(app, a.evaluate)->run = [&] { return run_evaluate(a.evaluate); };
  add_predict_options(app, a.predict)->run = [&] { return run_predict(a.predict); };
  add_plan_options(app, a.plan)->run = [&] { return run_plan(a.plan); };
  add_show_options(app, a.show)->run = [&] { return run_show(a.show); };
  add_doctor_options(app, a.doctor)->run = [&] { return run_doctor(a.doctor); };
  add_completion_options(app, a.completion)->run = [&] {
    return run_completion(app, a.completion);
  };
  add_version_options(app, a.version)->run = [&] { return run_version(a.version); };

  app.add({.names = {"--version"},
           .help = "print versions, and the GPUs that there are",
           .instead = version_text});
  app.about = {
      "Tensors and operators run as StarPU tasks on the cores of a machine, and on its GPUs. Every "
      "byte that a step touches has its place before the step begins; a verifier that shares no "
      "code with the planner checks the plan; a step calls no allocator.",
      "A subcommand's own help has its options: arenite train --help"};
  app.examples = {
      {"doctor", "can this machine train, and what would mend it?"},
      {"train --dataset synthetic --epochs 2", "a first training, on images drawn in memory"},
      {"train", "the main example: cnn2 on Fashion-MNIST"},
      {"plan \"model:cnn2?batch=64\" --svg plan.svg", "the memory of its step, and a picture"},
      {"plan buffers.csv --csv offsets.csv", "places for buffers of your own"}};
  app.statuses = {
      {exit_ok, "done"},
      {exit_failure, "a run failed although its input was right; a check of doctor fails"},
      {exit_bad_input, "wrong arguments, files or data; files that cannot be written"},
      {exit_capacity, "a plan needs more bytes than the capacity (plan)"},
      {exit_interrupted, "interrupted by Ctrl-C, SIGTERM or a closed terminal"}};
  app.read_on = "README.md and docs/command-line.md";
}

}  // namespace arenite::cli
