#include "src/cli/train_arguments.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/nn/nn.hpp>

#include "src/cli/checks.hpp"
#include "src/runtime/device_choice.hpp"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <string_view>
#include <vector>

namespace arenite::cli {
namespace {

std::string model_help() {
  std::string text = "network to train:";
  for (const nn::NamedModel& model : nn::models())
    text += "\n" + model.name + ": " + model.summary + "; meant for " + model.dataset;
  return text;
}

using Init = std::optional<float>;

std::optional<Init> parse_init(const std::string& text) {
  if (text == "default") return Init();
  constexpr std::string_view prefix = "uniform:";
  if (!text.starts_with(prefix)) return std::nullopt;
  const Init range = number_of_at_least_0(text.substr(prefix.size()));
  if (!range || *range == 0) return std::nullopt;
  return std::make_optional<Init>(range);
}

std::optional<std::optional<bool>> parse_resident(const std::string& text) {
  using Choice = std::optional<bool>;
  if (text == "auto") return Choice();
  if (text != "on" && text != "off") return std::nullopt;
  return std::make_optional<Choice>(text == "on");
}

std::optional<plan::ArenaLayout> parse_arenas(const std::string& text) {
  // `reset` is known, so that the planner can say which values it would lose.
  for (const auto layout :
       {plan::ArenaLayout::overlay, plan::ArenaLayout::two, plan::ArenaLayout::reset}) {
    if (text == plan::to_string(layout)) return layout;
  }
  return std::nullopt;
}

std::optional<runtime::Compute> parse_compute(const std::string& text) {
  for (const auto compute :
       {runtime::Compute::float32, runtime::Compute::bfloat16, runtime::Compute::tfloat32}) {
    if (text == runtime::to_string(compute)) return compute;
  }
  return std::nullopt;
}

std::optional<bool> parse_switch(const std::string& text) {
  if (text != "on" && text != "off") return std::nullopt;
  return text == "on";
}

/// On by default.
void add_switch(CLI::App& app, const std::string& name, bool& into, const std::string& help) {
  add_option<bool>(app, name, into, parse_switch, "one of on, off", help)->default_str("on");
}

void add_hyperparameters(CLI::App& app, TrainArguments& a) {
  const auto text = [](auto number) { return fmt::format("{}", number); };
  add_whole_number(app, "--epochs", a.epochs, 0, 1000000, "passes over the training images")
      ->default_str(text(a.epochs));
  add_whole_number(app, "--batch", a.batch, 1, 1 << 20, "samples of a step")
      ->default_str(text(a.batch));
  const auto add_float = [&](const std::string& name, float& into, Meaning<float> meaning,
                             const std::string& what, const std::string& help) {
    add_option<float>(app, name, into, meaning, what, help)
        ->type_name("FLOAT")
        ->default_str(text(into));
  };
  const std::string positive = "a finite number of at least 0";
  add_float("--lr", a.lr, number_of_at_least_0, positive, "learning rate");
  add_float("--momentum", a.momentum, number_from_0_to_below_1, "a number from 0 to below 1",
            "of SGD");
  add_float("--weight-decay", a.weight_decay, number_of_at_least_0, positive, "of SGD");
  add_whole_number(app, "--seed", a.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                   "of initial weights and shuffling")
      ->default_str(text(a.seed));
}

void add_execution(CLI::App& app, TrainArguments& a) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const auto device = [](const std::string& text) {
    return runtime::has_device_form(text) ? std::optional(text) : std::nullopt;
  };
  add_option<std::string>(
      app, "--device", a.device, device, runtime::device_form,
      "where to train: cpu, cuda (the first GPU), cuda:1, auto (a GPU if there is one); or "
      "several, on which lanes are dealt out, as in cuda:0+cuda:1 or cuda+cpu")
      ->default_str(a.device);
  add_option<std::int64_t>(app, "--memory", a.memory, bytes_of,
                           "bytes, as in 4096, 64MiB or 1.5GiB",
                           "memory that may be taken of each GPU (else nearly all that is free)");
  add_switch(app, "--cuda-graphs", a.cuda_graphs,
             "record what each task does on a GPU once, and launch it in one go");
  add_option<std::optional<bool>>(
      app, "--resident-data", a.resident_data, parse_resident, "one of auto, on, off",
      "keep the images in each GPU's memory, which gathers its batches from them (auto: where they "
      "take at most a quarter of it)")
      ->default_str("auto");
  add_whole_number(app, "--workers", a.workers, 1, 1024,
                   "CPU workers (else $STARPU_NCPU, else one a core)");
  add_whole_number(app, "--lanes", a.lanes, 1, 64,
                   "shares of a batch that run in parallel (else chosen from the network)");
  add_whole_number(app, "--limit", a.limit, 1, most,
                   "use the first N training images only (all, if there are fewer)");
  add_switch(app, "--shuffle", a.shuffle, "visit the images in a new order each epoch");
  add_option<Init>(app, "--init", a.init, parse_init,
                   "default, or uniform:A with a finite A above 0, as in uniform:0.1",
                   "initial weights: default, or uniform:A for U(-A, A)")
      ->default_str("default");
  add_option<plan::ArenaLayout>(app, "--arenas", a.arenas, parse_arenas, "one of overlay, two",
                                "overlay (one block) or two (forward and backward apart)")
      ->default_str("overlay");
  add_switch(
      app, "--fuse", a.fuse,
      "do convolution, ReLU and max pooling in one go, which keeps one byte an output, and so "
      "dense layers and ReLU, their gradients and updates");
  add_option<runtime::Compute>(app, "--compute", a.compute, parse_compute,
                               "one of float32, bfloat16, tfloat32",
                               "what products multiply: float32, operands rounded to bfloat16, or "
                               "on GPUs to tfloat32 (sums and all that is kept stay float32)")
      ->default_str("float32");
}

void add_reports(CLI::App& app, TrainArguments& a) {
  const auto add_flag = [&](const std::string& name, bool& into, const std::string& help) {
    app.add_flag(name, into, help)->disable_flag_override();
  };
  app.add_option("--log", a.log, "write JSON lines, one an epoch, to this file")
      ->check(not_empty());
  add_flag("--explain", a.explain, "list tasks, ops, handle classes and edges");
  add_flag("--draw", a.draw, "draw the step's memory plan as text");
  add_flag("--profile", a.profile,
           fmt::format("say where the time of the last epoch's steps went (of the first {}), and "
                       "name kernels for perf, in /tmp/perf-PID.map",
                       profiled_steps));
  add_flag(
      "--count-heap", a.count_heap,
      "begin anew with a library that counts the process's heap calls, and report those made in "
      "steps, the first one included: the warm-up is the building of the programs");
  app.add_option("--plan-svg", a.plan_svg, "write the step's memory plan as a picture")
      ->check(not_empty());
  app.add_option("--plan-json", a.plan_json, "write the step's memory plan as JSON")
      ->check(not_empty());
}

}  // namespace

CLI::App* add_train_options(CLI::App& app, TrainArguments& a) {
  CLI::App* train =
      app.add_subcommand("train", "Train a network on images and report its test accuracy");
  std::vector<std::string> models;
  for (const nn::NamedModel& model : nn::models()) models.push_back(model.name);
  train->add_option("--model", a.model, model_help())->check(one_of(models))->capture_default_str();
  train
      ->add_option("--dataset", a.dataset,
                   "images to train on (else those the model is meant for); never replaced by "
                   "another set")
      ->check(one_of(data::names()));
  train
      ->add_option("--data", a.data,
                   "the data set's own folder (else $ARENITE_DATASETS/<dataset>, else the cache)")
      ->check(not_empty());
  add_hyperparameters(*train, a);
  add_execution(*train, a);
  add_reports(*train, a);
  return train;
}

}  // namespace arenite::cli
