#include "src/cli/plan_input.hpp"

#include <arenite/error.hpp>
#include <arenite/plan/csv.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/cli/checks.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace arenite::cli {
namespace {

constexpr std::string_view model_prefix = "model:";

/// Up to the first `end`, which goes too; all of it where there is none.
std::string take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  std::string head(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

class ModelOptions {
 public:
  ModelOptions(ModelRequest& request, const std::string& input)
      : request_(request), input_(input) {}

  void read(const std::string& option) {
    std::string_view rest = option;
    const std::string name = take_until(rest, '=');
    const std::string value(rest);
    Nearest nearest(name);
    for (const char* known : {"batch", "mode"}) nearest.consider(known);
    if (nearest.found() != name || name.empty()) {
      wrong(name.empty() ? "an option without a name" : "unknown option '" + name + "'",
            "batch=N, mode=train or mode=inference",
            name == "lanes" || name == "shards" ? "the option --" + name + " says how many"
                                                : nearest.hint());
    }
    if (std::ranges::find(seen_, name) != seen_.end())
      wrong("option '" + name + "' twice", "each once");
    seen_.push_back(name);
    if (name == "batch") request_.batch = number(name, value, 1 << 20);
    if (name == "mode") request_.training = is_training(value);
  }

 private:
  std::int64_t number(const std::string& name, const std::string& value, std::uint64_t most) const {
    const auto number = whole_number(value, 1, most);
    if (!number) wrong(name + " '" + value + "'", whole_number_text(1, most));
    return static_cast<std::int64_t>(*number);
  }

  bool is_training(const std::string& value) const {
    Nearest nearest(value);
    for (const char* known : {"train", "inference"}) nearest.consider(known);
    if (value != nearest.found() || value.empty())
      wrong("mode '" + value + "'", "train or inference", nearest.hint());
    return value == "train";
  }

  [[noreturn]] void wrong(std::string found, std::string expected, std::string hint = {}) const {
    refuse(std::move(found), std::move(expected), "'" + input_ + "'", std::move(hint));
  }

  ModelRequest& request_;
  const std::string& input_;
  std::vector<std::string> seen_;
};

/// Where nothing is called so: perhaps a model is.
std::string model_hint(std::string_view path) {
  const std::size_t colon = path.find(':');
  std::string_view name = path.substr(colon == std::string_view::npos ? 0 : colon + 1);
  const std::string stem = take_until(name, '?');
  for (const nn::NamedModel& model : nn::models()) {
    if (model.name == stem) return "did you mean 'model:" + stem + "'?";
  }
  return {};
}

}  // namespace

bool names_model(std::string_view input) noexcept { return input.starts_with(model_prefix); }

ModelRequest parse_model(const std::string& input) {
  std::string_view rest = std::string_view(input).substr(model_prefix.size());
  const bool has_options = rest.find('?') != std::string_view::npos;
  const std::string name = take_until(rest, '?');
  ModelRequest request;
  try {
    request.model = &nn::model(name);
  } catch (const Error& error) {
    ErrorText text = error.text();
    text.where = "'" + input + "'";
    fail(std::move(text));
  }
  if (!has_options) return request;
  ModelOptions options(request, input);
  do {
    options.read(take_until(rest, '&'));
  } while (!rest.empty());
  return request;
}

bool is_script(std::string_view path, std::string_view text) noexcept {
  if (path.ends_with(".csv")) return false;
  if (path.ends_with(".arenite")) return true;
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  };
  skip_blanks();
  if (text.starts_with('$') || text.starts_with('#') || text.starts_with("formula")) return true;
  constexpr std::string_view result = "result";
  if (!text.starts_with(result)) return false;
  text.remove_prefix(result.size());
  skip_blanks();
  return text.starts_with('=');
}

std::string read_input(const std::string& path) {
  const auto wrong = [&](std::string found, std::string expected) {
    refuse(std::move(found), std::move(expected), "'" + path + "'", model_hint(path));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) wrong("a folder", "a table or a graph script");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  constexpr std::size_t chunk = std::size_t{1} << 20;
  // One byte more than may be read shows that there is more.
  while (file && text.size() <= plan::max_csv_bytes) {
    const std::size_t had = text.size();
    text.resize(std::min(had + chunk, plan::max_csv_bytes + 1));
    file.read(text.data() + had, static_cast<std::streamsize>(text.size() - had));
    text.resize(had + static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad())
    wrong(system_reason(), "a table or a graph script that can be read");
  return text;
}

}  // namespace arenite::cli
