#include "src/cli/train_arguments.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>

#include "src/cli/checks.hpp"
#include "src/cli/saved_network.hpp"
#include "src/graph/rate_schedules.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace arenite::cli {
namespace {

std::string model_help() {
  std::string text = "the network:";
  for (const nn::NamedModel& model : nn::models())
    text += "\n" + model.name + ": " + model.summary + "; meant for " + model.dataset;
  return text;
}

using Init = std::optional<float>;
using Number = std::pair<std::string, double>;

std::optional<Number> number_named(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return std::nullopt;
  const auto number = real_of_at_least_0(text.substr(equals + 1));
  if (!number) return std::nullopt;
  return Number(text.substr(0, equals), *number);
}

std::optional<Init> parse_init(const std::string& text) {
  if (text == "default") return Init();
  constexpr std::string_view prefix = "uniform:";
  if (!text.starts_with(prefix)) return std::nullopt;
  const Init range = number_of_at_least_0(text.substr(prefix.size()));
  if (!range || *range == 0) return std::nullopt;
  return std::make_optional<Init>(range);
}

std::optional<plan::ArenaLayout> parse_arenas(const std::string& text) {
  // `reset` is known, so that the planner can say which values it would lose.
  for (const auto layout :
       {plan::ArenaLayout::overlay, plan::ArenaLayout::two, plan::ArenaLayout::reset}) {
    if (text == plan::to_string(layout)) return layout;
  }
  return std::nullopt;
}

/// What stands behind a name and ':', "warm_up=100,least=0.1": calls take(name, text of the number)
/// for each; false where it is no such list.
template <class Take>
bool each_number(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view one = list.substr(0, end);
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == one.npos) return false;
    if (!take(std::string(one.substr(0, equals)), std::string(one.substr(equals + 1))))
      return false;
    if (end + 1 == list.size()) return false;  // a comma at the end
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return true;
}

/// "*.bias:weight_decay=0,rate=0.1", "rank=1:weight_decay=0"
std::optional<graph::ParameterGroup> group_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  graph::ParameterGroup group;
  group.names = text.substr(0, colon);
  constexpr std::string_view rank = "rank=";
  if (group.names.starts_with(rank)) {
    const auto most = number_of_at_least_0(group.names.substr(rank.size()));
    if (!most || *most > 8 || *most != static_cast<float>(static_cast<int>(*most)))
      return std::nullopt;
    group.most_rank = static_cast<int>(*most);
    group.names.clear();
  }
  const auto take = [&](const std::string& name, const std::string& number) {
    const auto value = real_of_at_least_0(number);
    if (!value || group.attributes.has(name)) return false;
    if (name == "rate") {
      group.rate = *value;
    } else {
      group.attributes.set(name, *value);
    }
    return true;
  };
  return each_number(std::string_view(text).substr(colon + 1), take) ? std::optional(group)
                                                                     : std::nullopt;
}

/// "30/80": steps.
std::optional<std::vector<std::int64_t>> steps_of(const std::string& text) {
  std::vector<std::int64_t> steps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const auto step = real_of_at_least_0(text.substr(at, end - at));
    if (!step || *step != std::floor(*step) || *step > 1e15) return std::nullopt;
    steps.push_back(static_cast<std::int64_t>(*step));
    at = end + 1;
  }
  return steps;
}

/// "cosine:warm_up=100,least=0.1", "multi_step:at=30/80"
std::string schedule_of(const std::string& text, std::int64_t steps) {
  const std::string name = text.substr(0, text.find(':'));
  graph::Attributes numbers;
  const auto take = [&](const std::string& number, const std::string& given) {
    if (numbers.has(number)) return false;
    const auto value = real_of_at_least_0(given);
    const auto listed = number == "at" ? steps_of(given) : std::nullopt;
    if (listed) {
      numbers.set(number, *listed);
    } else if (value) {
      numbers.set(number, *value);
    }
    return listed || value;
  };
  const bool has_numbers = name.size() < text.size();
  if (has_numbers && (name.size() + 1 == text.size() ||
                      !each_number(std::string_view(text).substr(name.size() + 1), take))) {
    fail({.found = "--schedule " + text,
          .expected = "NAME, or NAME:NUMBER=X,… with each number once, finite and at least 0",
          .hint = "lists of steps are written as at=30/80"});
  }
  const auto known = std::ranges::find(graph::rate_schedules(), name, &graph::RateSchedule::name);
  if (known != graph::rate_schedules().end() && known->numbers.starts_with("steps") &&
      !numbers.has("steps"))
    numbers.set("steps", std::max<std::int64_t>(steps, 1));
  return optim::schedule(name, numbers);
}

std::optional<float> share_of(const std::string& text) {
  const auto number = number_from_0_to_below_1(text);
  return number && *number > 0 ? number : std::nullopt;
}
constexpr const char* a_share = "a number above 0 and below 1";

void add_on_off(Command& train, const std::string& name, bool& into, const std::string& help) {
  add_named<bool>(train, name, into, {{"on", true}, {"off", false}}, help);
}

void add_subject(Command& train, TrainArguments& a) {
  train.heading("What is trained");
  train.add_choice("--model", a.model, names_of(nn::models()), model_help())->default_str(a.model);
  train.add_path(
      "--script", a.script, "FILE",
      "a network of one's own, in place of those: a script with a train statement, which "
      "says how it is trained (docs/scripts.md)");
  train.add_choice("--dataset", a.dataset, data::names(),
                   "the images to train on (else those the model is meant for), never replaced by "
                   "another set; the synthetic ones are drawn in memory");
  train.add_path("--data", a.data, "FOLDER",
                 "the data set's own folder (else $ARENITE_DATASETS/<dataset>, else the cache, "
                 "which Arenite's script datasets/fetch fills)");
  add_whole_number(train, "--limit", a.limit, 1, std::numeric_limits<std::int64_t>::max(),
                   "use the first N training images only (all, if there are fewer)");
  add_option<float>(train, "--validation", a.validation, share_of, a_share,
                    "keep this share of the training images, the last of them, to test each epoch "
                    "on: test images then are for the end alone")
      ->type_name("SHARE");
}

void add_hyperparameters(Command& train, TrainArguments& a) {
  train.heading("How it is trained");
  const auto text = [](auto number) { return fmt::format("{}", number); };
  add_whole_number(train, "--epochs", a.epochs, 0, 1000000, "sweeps over the training images")
      ->default_str(text(a.epochs));
  add_whole_number(train, "--batch", a.batch, 1, 1 << 20, "samples of a step")
      ->default_str(text(usual_batch));
  train
      .add_choice("--optimizer", a.optimizer, optim::names(),
                  "how gradients change weights (docs/scripts.md lists their numbers)")
      ->default_str(a.optimizer);
  const std::string positive = "a finite number of at least 0, as float32 has it";
  add_option<float>(train, "--lr", a.lr, number_of_at_least_0, positive,
                    "learning rate (else the optimizer's own: 0.02 of sgd)")
      ->type_name("X");
  const auto add_number = [&](const std::string& name, Meaning<float> meaning,
                              const std::string& what, const std::string& help) {
    const auto take = [&a, number = name](float value) {
      std::string own = number.substr(2);
      std::ranges::replace(own, '-', '_');
      a.numbers.emplace_back(own, as_written(value));
    };
    add_taken<float>(train, name, take, std::move(meaning), what, help)->type_name("X");
  };
  add_number("--momentum", number_from_0_to_below_1, "a number from 0 to below 1",
             "momentum, below 1 (else 0.9 of sgd)");
  add_number("--weight-decay", number_of_at_least_0, positive, "weight decay (else 0 of sgd)");
  const auto add_named_number = [&a](Number number) { a.numbers.push_back(std::move(number)); };
  add_taken<Number>(train, "--opt", add_named_number, number_named,
                    "NAME=X with a finite number, as in beta1=0.8",
                    "another number of the optimizer, as in beta1=0.8")
      ->type_name("NAME=X")
      ->repeats = true;
  const std::vector<std::string> schedules = names_of(graph::rate_schedules());
  const auto some_text = [](const std::string& given) {
    return given.empty() ? std::nullopt : std::optional(given);
  };
  add_option<std::string>(
      train, "--schedule", a.schedule, some_text, "a schedule",
      fmt::format("how the learning rate changes from step to step, with numbers, as in "
                  "cosine:warm_up=100 (docs/scripts.md lists them): {}",
                  fmt::join(schedules, ", ")))
      ->type_name("NAME[:NUMBER=X,…]")
      ->offers(schedules);
  add_option<float>(train, "--clip-norm", a.clip_norm, number_of_at_least_0, positive,
                    "make all gradients together so long where they are longer (0: never)")
      ->type_name("X")
      ->default_str("0");
  add_option<float>(train, "--clip-value", a.clip_value, number_of_at_least_0, positive,
                    "let no element of a gradient be farther from 0 (0: any)")
      ->type_name("X")
      ->default_str("0");
  const auto add_group = [&a](graph::ParameterGroup group) {
    a.groups.push_back(std::move(group));
  };
  add_taken<graph::ParameterGroup>(
      train, "--group", add_group, group_of,
      "PATTERN:NAME=X,… or rank=N:NAME=X,…, as in '*.bias:weight_decay=0'",
      "other numbers of the optimizer, or `rate`, which its learning rate is multiplied by, for "
      "parameters whose names match, or that have no more than N axes: rank=1:weight_decay=0 lets "
      "biases and what norms scale by not decay; the first group that has a parameter counts")
      ->type_name("WHICH:NAME=X")
      ->repeats = true;
  add_whole_number(train, "--accumulate", a.accumulate, 1, 64,
                   "batches whose gradients a step adds up, as shards of it (--at-once 1: in the "
                   "memory of one; but what looks at all samples, as batch norm, sees all of them)")
      ->default_str(text(a.accumulate));
  add_option<float>(train, "--ema", a.ema, share_of, a_share,
                    "keep a mean of the weights, of which this share stays in each step (as in "
                    "0.999), and test that")
      ->type_name("X");
  add_on_off(train, "--check-loss", a.check_loss,
             "end where the loss is not finite, before it changes a weight");
  add_whole_number(train, "--seed", a.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                   "seed of the initial weights and of shuffling")
      ->default_str(text(a.seed));
  add_on_off(train, "--shuffle", a.shuffle, "visit the images in a new order each epoch");
  add_option<Init>(train, "--init", a.init, parse_init,
                   "default, or uniform:A with a finite A above 0, as in uniform:0.1",
                   "initial weights: what each layer asks for, or uniform:A for U(-A, A)")
      ->type_name("HOW")
      ->default_str("default")
      ->offers({"default", "uniform:"});
  using runtime::Compute;
  add_named<Compute>(
      train, "--compute", a.compute,
      {{"float32", Compute::float32},
       {"bfloat16", Compute::bfloat16},
       {"tfloat32", Compute::tfloat32}},
      "what products multiply: float32, operands rounded to bfloat16, or on GPUs to tfloat32 "
      "(sums and all that is kept stay float32)")
      ->type_name("NAME");
}

void add_places(Command& train, TrainArguments& a) {
  train.heading("Where it runs");
  add_device(train, a.device);
  add_workers(train, a.workers);
  add_cut(train, a.cut);
  add_option<std::int64_t>(train, "--memory", a.memory, bytes_of, a_number_of_bytes,
                           "memory that may be taken of each GPU, as in 64MiB or 1.5GiB (else "
                           "nearly all of it)")
      ->type_name("BYTES");
  add_on_off(train, "--cuda-graphs", a.cuda_graphs,
             "record what each task does on a GPU once, and launch it in one go");
  add_named<std::optional<bool>>(
      train, "--resident-data", a.resident_data,
      {{"auto", std::nullopt}, {"on", true}, {"off", false}},
      "keep the images in each GPU's memory, which gathers its batches from them (auto: where they "
      "take at most a quarter of it)");
  train.add_path("--kernels", a.kernels, "FILE",
                 "take the kernels that were measured to be the fastest, as gpu_kernels --choose "
                 "wrote them (docs/gpu.md)");
}

void add_planning(Command& train, TrainArguments& a) {
  train.heading("How its memory is planned");
  add_option<plan::ArenaLayout>(
      train, "--arenas", a.arenas, parse_arenas, "one of overlay, two",
      "where values lie: overlay (one block, in which backward takes the place of "
      "activations as they die) or two "
      "(forward and backward apart)")
      ->type_name("NAME")
      ->default_str("overlay")
      ->offers({"overlay", "two"});
  add_on_off(train, "--fuse", a.fuse,
             "do convolution, ReLU and max pooling in one go, which keeps one byte an output, and "
             "so dense layers and ReLU, their gradients and updates");
}

void add_reports(Command& train, TrainArguments& a) {
  train.heading("What is reported");
  train.add_switch("--json", a.json,
                   "write JSON to standard output in place of words: an object a line, one for "
                   "each event (docs/command-line.md)");
  train.add_path("--log", a.log, "FILE",
                 "write the JSON lines of epochs and of the end to this file, each when it is so "
                 "far");
  train.add_switch(
      "--explain", a.explain,
      "list what each pass of the compiler did, and tasks, ops, handle classes and edges");
  train.add_switch("--draw", a.draw, "draw the step's memory plan as text");
  train.add_path("--plan-svg", a.plan_svg, "FILE", "write the step's memory plan as a picture");
  train.add_path("--plan-json", a.plan_json, "FILE", "write the step's memory plan as JSON");
  train.add_switch("--profile", a.profile,
                   fmt::format("say where the time of the last epoch's steps went (of the first "
                               "{}): kernels, staging, runtime, idle; and each op's; and name "
                               "kernels for perf, in /tmp/perf-PID.map",
                               profiled_steps));
  train.add_switch(
      "--count-heap", a.count_heap,
      "begin anew with a library that counts the process's heap calls, and report those made in "
      "steps, the first one included: the warm-up is the building of the programs");
}

}  // namespace

const char* tested_by(const TrainArguments& a) { return a.validation ? "validation" : "test"; }

optim::Optimizer optimizer_of(const TrainArguments& a, std::int64_t steps) {
  graph::Attributes numbers;
  if (a.optimizer == "sgd") numbers.set("momentum", 0.9);
  std::set<std::string> given;
  for (const auto& [name, number] : a.numbers) {
    if (!given.insert(name).second)
      fail({.found = "a second '" + name + "' of the optimizer", .expected = "each number once"});
    numbers.set(name, number);
  }
  const bool is_ours = a.optimizer == "sgd" && !a.lr;
  optim::Optimizer optimizer =
      optim::named(a.optimizer, numbers, is_ours ? std::optional(0.02f) : a.lr);
  if (!a.schedule.empty()) optimizer.schedule = schedule_of(a.schedule, steps);
  optimizer.clip_norm = as_written(a.clip_norm);
  optimizer.clip_value = as_written(a.clip_value);
  optimizer.groups = a.groups;
  if (a.ema) optimizer.averaging = graph::Averaging{.decay = as_written(*a.ema)};
  optimizer.check_loss = a.check_loss;
  return optimizer;
}

Command* add_train_options(Command& app, TrainArguments& a) {
  Command& train =
      add_command(app, "train", "Train a network on images and report its test accuracy");
  train.about = {
      "First comes the table of the step's memory, each byte of which has its place before the "
      "first step; then a line an epoch; at the end the test accuracy, and the hash of the "
      "weights, which is the same for any number of workers."};
  add_subject(train, a);
  add_hyperparameters(train, a);
  add_checkpoints(train, a.checkpoints);
  add_places(train, a);
  add_planning(train, a);
  add_reports(train, a);
  // The script says all of it.
  std::ranges::find(train.options, "--script", &Option::name)->excluded = {
      "--model", "--optimizer",  "--lr",        "--momentum",   "--weight-decay",
      "--opt",   "--schedule",   "--clip-norm", "--clip-value", "--group",
      "--ema",   "--check-loss", "--init"};
  train.examples = {
      {"train --dataset synthetic --epochs 2", "a first training: nothing to download"},
      {"train", "cnn2 on Fashion-MNIST, ten epochs"},
      {"train --model lenet5 --lr 0.05 --epochs 3", "another network, another learning rate"},
      {"train --optimizer adamw --schedule cosine:warm_up=100",
       "another optimizer, whose rate rises and falls"},
      {"train --optimizer adamw --weight-decay 0.05 --group rank=1:weight_decay=0 --ema 0.999",
       "only weights decay, and their means are tested"},
      {"train --save run.st --save-every 60",
       "saved every minute and at the end; --resume run.st goes on"},
      {"train --script net.arenite --validation 0.1", "a network of one's own"},
      {"train --epochs 1 --limit 6400 --profile", "where the time goes"},
      {"train --json > run.jsonl", "for a program: what docs/command-line.md lists"},
      {"train --device auto", "on a GPU, where there is one"}};
  train.statuses = {
      {exit_ok, "trained"},
      {exit_failure, "a run failed: memory refused, StarPU refused, nobody reads the output"},
      {exit_bad_input, "wrong arguments or data; a file that cannot be written"},
      {exit_interrupted,
       "interrupted: training ends within a step, with the results so far; a second Ctrl-C ends "
       "the process at once"}};
  train.read_on = "README.md, docs/command-line.md, docs/gpu.md";
  return &train;
}

}  // namespace arenite::cli
