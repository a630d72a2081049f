// `arenite predict FILE IMAGE…`: what a network takes images for.
#include <arenite/error.hpp>
#include <arenite/train/classes.hpp>

#include "src/cli/commands.hpp"
#include "src/cli/image_samples.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/output.hpp"
#include "src/cli/saved_network.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

namespace arenite::cli {
namespace {

/// Where an image comes from.
struct Source {
  const std::string* file;
  std::int64_t number = 0;  ///< in the file
  bool is_alone = true;     ///< there

  std::string text() const { return is_alone ? *file : fmt::format("{}[{}]", *file, number); }
};

class Printer {
 public:
  Printer(SavedNetwork& network, const PredictArguments& arguments)
      : network_(network), classes_(network.classes()), json_(arguments.json) {
    top_ = arguments.top > 0 ? arguments.top : most_shown;
    if (classes_ == 0 && arguments.top > 0) {
      fail({.found = "--top for a network whose predictions are no scores of classes",
            .expected = "no such option"});
    }
    if (arguments.top > classes_) {
      fail({.found = fmt::format("--top {}", arguments.top),
            .expected = fmt::format("at most the {} classes of the network", classes_)});
    }
    top_ = std::min(top_, classes_);
  }

  void print(const std::vector<Source>& sources, const train::Predictions& predictions) const {
    if (classes_ > 0) return print_classes(sources, predictions);
    const auto print_numbers = [&](const auto& values) {
      const std::size_t each = values.size() / sources.size();
      for (std::size_t i = 0; i < sources.size(); ++i)
        print_row(sources[i], values.subspan(i * each, each));
    };
    switch (predictions.type) {
      case DType::float32:
        return print_numbers(predictions.values<float>());
      case DType::float64:
        return print_numbers(predictions.values<double>());
      case DType::int64:
        return print_numbers(predictions.values<std::int64_t>());
      case DType::int32:
        return print_numbers(predictions.values<std::int32_t>());
      default:
        return print_numbers(predictions.values<std::uint8_t>());
    }
  }

 private:
  static constexpr std::int64_t most_shown = 3;

  Json said_of(const Source& source) const {
    return {{"file", *source.file}, {"image", source.number}};
  }

  void print_classes(const std::vector<Source>& sources,
                     const train::Predictions& predictions) const {
    const std::vector<train::Guess> guesses = train::guesses(predictions, top_);
    auto guess = guesses.begin();
    for (const Source& source : sources) {
      std::string words = source.text() + ":";
      Json list = Json::list();
      for (std::int64_t k = 0; k < top_; ++k, ++guess) {
        const std::string name = network_.name_of(guess->label);
        words += fmt::format("{} {} ", k == 0 ? "" : ",", name);
        words +=
            std::isnan(guess->share) ? "no number" : fmt::format("{:.1f} %", guess->share * 100);
        list.push_back({{"class", name}, {"label", guess->label}, {"share", guess->share}});
      }
      if (json_) {
        Json line = said_of(source);
        line["classes"] = std::move(list);
        std::cout << line_of(line);
      } else {
        std::cout << words << '\n';
      }
    }
  }

  template <class T>
  void print_row(const Source& source, std::span<const T> values) const {
    if (json_) {
      Json line = said_of(source);
      Json numbers = Json::list();
      for (const T value : values) numbers.push_back(value);
      line["predictions"] = std::move(numbers);
      std::cout << line_of(line);
      return;
    }
    std::cout << source.text() << ':';
    for (const T value : values) std::cout << fmt::format(" {}", value);
    std::cout << '\n';
  }

  SavedNetwork& network_;
  std::int64_t classes_, top_;
  bool json_;
};

}  // namespace

Command* add_predict_options(Command& app, PredictArguments& a) {
  Command& predict = add_command(app, "predict", "Say what a trained network takes images for");
  predict.about = {
      "An image is a PNG picture, an IDX file (plain or .gz) or an array of NumPy's (.npy), of the "
      "size that the network was trained on, or many of them in one file. Bytes are divided by "
      "255; an array of real numbers is taken as it is."};
  add_saved_network(predict, a.network);
  predict
      .add({.names = {"IMAGE"},
            .help = "files with images",
            .kind = "IMAGE",
            .rule = a_path(),
            .take = [&a](const std::string& text) { a.images.push_back(text); },
            .repeats = true,
            .offer = {.files = true}})
      ->required();
  add_whole_number(predict, "--top", a.top, 1, 1000000, "show so many of the likeliest classes")
      ->default_str("3");
  predict.add_switch("--json", a.json, "an object a line for each image (docs/command-line.md)");
  predict.examples = {{"predict run.st shirt.png", "its three likeliest classes, with shares"},
                      {"predict run.st t10k-images-idx3-ubyte.gz --top 1 --json > classes.jsonl",
                       "many images of one file, for a program"}};
  predict.statuses = {{exit_ok, "predicted"},
                      {exit_failure, "a run failed: memory refused, StarPU refused"},
                      {exit_bad_input, "wrong arguments; a file that is damaged or none of these"},
                      {exit_interrupted, "interrupted"}};
  predict.read_on = "docs/checkpoints.md";
  return &predict;
}

int run_predict(const PredictArguments& a) {
  exit_on_interrupts();
  SavedNetwork network(a.network);
  const Port& input = image_input(network.inputs());
  const Shape image(input.shape.dims().subspan(1));
  const Printer printer(network, a);
  Images images;
  std::vector<Source> sources;
  const auto flush = [&] {
    if (images.count == 0) return;
    printer.print(sources, network.trainer().predict(samples_of(images, input)));
    flush_output();
    images = {};
    sources.clear();
  };
  constexpr std::int64_t enough = 4096;
  for (const std::string& file : a.images) {
    if (images.count >= enough) flush();
    std::int64_t count = append_images(file, image, images);
    if (count == 0) {
      flush();
      count = append_images(file, image, images);
    }
    for (std::int64_t i = 0; i < count; ++i) sources.push_back({&file, i, count == 1});
  }
  flush();
  return exit_ok;
}

}  // namespace arenite::cli
