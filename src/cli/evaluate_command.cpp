// `arenite evaluate FILE`: what a trained network is worth on a data set, class by class.
#include <arenite/error.hpp>
#include <arenite/train/classes.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/element.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/confusion_picture.hpp"
#include "src/cli/image_samples.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/metric_text.hpp"
#include "src/cli/output.hpp"
#include "src/cli/saved_network.hpp"
#include "src/runtime/environment.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace arenite::cli {
namespace {

struct Evaluated {
  train::Metrics metrics;
  /// None where predictions are no scores of classes, or nothing has labels.
  std::optional<train::Confusion> confusion;
  std::int64_t k = 0;
  double top_k = 0;
};

/// The labels, by the input that is given them; null: none is.
const Column* labels_of(const Samples& samples) {
  const auto found = std::ranges::find_if(samples.columns, [](const Column& column) {
    return column.shape.rank() == 1 && !is_real(column.type);
  });
  return found == samples.columns.end() ? nullptr : &*found;
}

Evaluated evaluated(SavedNetwork& network, const Samples& samples, std::int64_t top) {
  train::Trainer& trainer = network.trainer();
  Evaluated found{.metrics = trainer.evaluate(samples), .confusion = {}};
  const Column* const labels = labels_of(samples);
  const std::int64_t classes = network.classes();
  if (labels == nullptr || classes == 0) return found;
  const train::Predictions scores = trainer.predict(samples);
  found.confusion = train::confusion(scores, *labels);
  found.k = std::min(top, classes);
  found.top_k = train::top_k(scores, *labels, found.k);
  return found;
}

void print_words(const SavedNetwork& network, const data::ImageData& data, const data::Split& split,
                 const std::string& images, const Evaluated& found) {
  std::string text =
      fmt::format("{}\n{} ({}): {} {} images of {}\n", network.description(), data.name,
                  data.origin, split.count, images, to_string(split.shape()));
  for (std::size_t i = 0; i < found.metrics.names->size(); ++i) {
    const std::string& name = (*found.metrics.names)[i];
    text += fmt::format("{}{} {}", i == 0 ? "" : "  ", name,
                        metric_text(name, found.metrics.values.at(i)));
  }
  if (found.confusion) text += fmt::format("  top-{} {}", found.k, percent(found.top_k));
  text += fmt::format("  {:.2f} s  {:.0f} samples/s\n", found.metrics.seconds,
                      static_cast<double>(found.metrics.samples) / found.metrics.seconds);
  std::cout << text;
  if (!found.confusion) return;

  const train::Confusion& confusion = *found.confusion;
  // Wider tables are for the picture and for programs.
  constexpr std::int64_t most_columns = 20;
  std::size_t longest = 5;
  for (std::int64_t i = 0; i < confusion.classes; ++i)
    longest = std::max(longest, network.name_of(i).size());
  const bool shows_counts = confusion.classes <= most_columns;
  text = fmt::format("\n{:>3} {:<{}}  {:>9} {:>9}", "", "class", longest, "recall", "precision");
  for (std::int64_t i = 0; shows_counts && i < confusion.classes; ++i)
    text += fmt::format(" {:>6}", i);
  text += '\n';
  for (std::int64_t i = 0; i < confusion.classes; ++i) {
    text += fmt::format("{:>3} {:<{}}  {:>9} {:>9}", i, network.name_of(i), longest,
                        percent(confusion.recall(i)), percent(confusion.precision(i)));
    for (std::int64_t k = 0; shows_counts && k < confusion.classes; ++k)
      text += fmt::format(" {:>6}", confusion.count(i, k));
    text += '\n';
  }
  const std::int64_t unanswered =
      std::accumulate(confusion.unanswered.begin(), confusion.unanswered.end(), std::int64_t{0});
  if (unanswered > 0)
    text += fmt::format("{} images have scores that are not finite: of no class\n", unanswered);
  std::cout << text;
}

Json json_of(const SavedNetwork& network, const SavedNetworkArguments& arguments,
             const data::ImageData& data, const std::string& images, const Evaluated& found) {
  Json metrics = Json::object();
  for (std::size_t i = 0; i < found.metrics.names->size(); ++i)
    metrics[(*found.metrics.names)[i]] = found.metrics.values.at(i);
  Json json{{"file", arguments.file},
            {"model", network.model()},
            {"steps", network.steps()},
            {"epochs", network.epochs()},
            {"dataset", data.name},
            {"of", images},
            {"images", found.metrics.samples},
            {"metrics", std::move(metrics)},
            {"seconds", found.metrics.seconds}};
  if (!found.confusion) return json;
  const train::Confusion& confusion = *found.confusion;
  json["top"] = Json{{"k", found.k}, {"accuracy", found.top_k}};
  Json classes = Json::list(), rows = Json::list();
  for (std::int64_t i = 0; i < confusion.classes; ++i) {
    classes.push_back({{"class", network.name_of(i)},
                       {"images", confusion.of_class(i)},
                       {"unanswered", confusion.unanswered.at(static_cast<std::size_t>(i))},
                       {"recall", confusion.recall(i)},
                       {"precision", confusion.precision(i)}});
    Json row = Json::list();
    for (std::int64_t k = 0; k < confusion.classes; ++k) row.push_back(confusion.count(i, k));
    rows.push_back(std::move(row));
  }
  json["classes"] = std::move(classes);
  json["confusion"] = std::move(rows);
  return json;
}

}  // namespace

Command* add_evaluate_options(Command& app, EvaluateArguments& a) {
  Command& evaluate =
      add_command(app, "evaluate", "Say what a trained network is worth, class by class");
  evaluate.about = {
      "Its loss and metrics over a data set, how often its class is among the likeliest, and which "
      "classes it takes for which: a row for each class, a column for what its images are taken "
      "for. Recall is the part of a class that is found, precision the part of what is taken for a "
      "class that is of it."};
  add_saved_network(evaluate, a.network);
  evaluate.add_choice("--dataset", a.dataset, data::names(),
                      "the images (else those of the set that it was trained on)");
  evaluate.add_path("--data", a.data, "FOLDER",
                    "the data set's own folder (else as train finds it)");
  evaluate.add_choice("--images", a.images, {"test", "training"}, "which of the set's images")
      ->default_str(a.images);
  add_whole_number(evaluate, "--limit", a.limit, 1, std::numeric_limits<std::int64_t>::max(),
                   "use the first N images only (all, if there are fewer)");
  add_whole_number(evaluate, "--top", a.top, 1, 1000000,
                   "how often the right class is among so many")
      ->default_str(std::to_string(a.top));
  evaluate.add_path("--svg", a.svg, "FILE", "draw which classes are taken for which");
  evaluate.add_switch("--json", a.json, "as a JSON object (docs/command-line.md)");
  evaluate.examples = {{"evaluate run.st", "on the test images of the set it was trained on"},
                       {"evaluate run.st --svg confusion.svg", "and a picture"}};
  evaluate.statuses = {{exit_ok, "evaluated"},
                       {exit_failure, "a run failed: memory refused, StarPU refused"},
                       {exit_bad_input,
                        "wrong arguments or data; a file that is damaged, or has "
                        "no network; a file that cannot be written"},
                       {exit_interrupted, "interrupted"}};
  evaluate.read_on = "docs/checkpoints.md";
  return &evaluate;
}

int run_evaluate(const EvaluateArguments& a) {
  exit_on_interrupts();
  refuse_shared_files({{"FILE", a.network.file},
                       {"--svg", a.svg},
                       {"ARENITE_TRACE", runtime::environment("ARENITE_TRACE")},
                       {"ARENITE_MEMORY", runtime::environment("ARENITE_MEMORY")}});
  std::optional<AtomicFile> picture;
  if (!a.svg.empty()) picture.emplace(a.svg, "--svg '" + a.svg + "'");
  SavedNetwork network(a.network);
  const std::string dataset = a.dataset.empty() ? network.dataset() : a.dataset;
  if (dataset.empty()) {
    fail({.found = "a run that does not say which images it was trained on",
          .expected = "--dataset NAME",
          .where = a.network.file});
  }
  const data::ImageData data = data::find(dataset, a.data);
  network.take_names(data.class_names);
  data::Split split = a.images == "test" ? data.test : data.train;
  if (a.limit > 0) split = split.first(a.limit);
  const SplitSamples given = samples_for(network.inputs(), split, a.images);
  const Evaluated found = evaluated(network, given.samples, a.top);
  if (picture) {
    if (!found.confusion) {
      fail({.found = "--svg for a network without scores of classes",
            .expected = "predictions [N, classes], and labels",
            .where = a.network.file});
    }
    const auto name = [&](std::int64_t label) { return network.name_of(label); };
    picture->write(picture_of(*found.confusion, network.description() + ", " + data.name, name));
    picture->commit();
  }
  if (a.json) {
    std::cout << line_of(json_of(network, a.network, data, a.images, found));
  } else {
    print_words(network, data, split, a.images, found);
  }
  return exit_ok;
}

}  // namespace arenite::cli
