#include "src/cli/saved_network.hpp"

#include "src/base/element.hpp"
#include "src/base/json.hpp"
#include "src/cli/checks.hpp"
#include "src/plan/json_field.hpp"
#include "src/runtime/device_choice.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace arenite::cli {
namespace {

constexpr const char *dataset_name = "dataset", *classes_name = "classes", *model_name = "model";

}  // namespace

SavedWords words_of(const data::ImageData& data, const std::string& model) {
  return {{dataset_name, data.name},
          {classes_name, Json(data.class_names).dump()},
          {model_name, model}};
}

void add_device(Command& command, std::string& device) {
  const auto has_form = [](const std::string& text) {
    return runtime::has_device_form(text) ? std::optional(text) : std::nullopt;
  };
  add_option<std::string>(command, "--device", device, has_form, runtime::device_form,
                          "where tasks run: cpu, cuda (the first GPU), cuda:1, auto (a GPU if "
                          "there is one); or several, on which "
                          "lanes are dealt out, as in cuda:0+cuda:1 or cuda+cpu")
      ->type_name("WHERE")
      ->default_str(device)
      ->offers({"cpu", "cuda", "auto", "cuda+cpu"});
}

void add_workers(Command& command, int& workers) {
  constexpr int most = 1024;
  add_whole_number(
      command, "--workers", workers, 1, most,
      "CPU workers (else $STARPU_NCPU, else one a usable processor; 2 beside GPUs alone)");
}

void add_saved_network(Command& command, SavedNetworkArguments& a) {
  command.add_path("FILE", a.file, "FILE", "a run that train --save has written")->required();
  add_device(command, a.device);
  add_workers(command, a.workers);
}

SavedNetwork::SavedNetwork(const SavedNetworkArguments& arguments)
    : file_(arguments.file),
      run_(train::saved_run(file_)),
      session_({.workers = arguments.workers, .device = arguments.device}),
      trainer_(session_, run_.build, train::options_on(run_, session_)),
      inputs_(trainer_.inputs()) {
  trainer_.take_states(file_);
  if (const std::string text = said(classes_name); !text.empty()) {
    const Json json = plan::parse_document(text, file_, 1, "names of classes");
    const plan::Field names(json, classes_name, file_);
    for (std::size_t i = 0; i < names.size(); ++i) names_.push_back(names[i].text());
  }
}

std::string SavedNetwork::said(std::string_view name) const {
  const auto found = std::ranges::find(run_.said, name, &SavedWords::value_type::first);
  return found == run_.said.end() ? std::string() : found->second;
}

std::string SavedNetwork::description() const {
  return fmt::format("{}: {}step {}, {} epoch{} done", file_, model().empty() ? "" : model() + ", ",
                     run_.steps, run_.epochs, run_.epochs == 1 ? "" : "s");
}

std::string SavedNetwork::name_of(std::int64_t label) const {
  const auto at = static_cast<std::size_t>(label);
  return at < names_.size() ? names_[at] : std::to_string(label);
}

void SavedNetwork::take_names(const std::vector<std::string>& names) {
  if (names_.empty()) names_ = names;
}

std::int64_t SavedNetwork::classes() const {
  if (!trainer_.has_predictions() || names_.size() < 2) return 0;
  const Shape shape = trainer_.shape_of_predictions(1);
  const bool are_scores =
      is_real(trainer_.type_of_predictions()) && shape == Shape{1, std::ssize(names_)};
  return are_scores ? shape[1] : 0;
}

}  // namespace arenite::cli
