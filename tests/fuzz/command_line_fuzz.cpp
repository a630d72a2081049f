// Arguments of `arenite`, cut from the bytes at each line break: a message, or values in the ranges
// that --help names, each read as what its text says.
#include "src/cli/command_line.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/plan_input.hpp"
#include "src/cli/train_arguments.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace arenite;
using fuzzing::require;

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> all{"arenite"};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    // As the system passes them: no argument holds a zero byte.
    all.emplace_back(line.substr(0, line.find('\0')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return all;
}

void check_cut(const cli::CutArguments& cut) {
  for (const int number : {cut.shards, cut.lanes, cut.at_once})
    require(number >= 0 && number <= 64, "--shards, --lanes, --at-once");
}

template <class T>
bool within(T value, std::int64_t least, std::int64_t most) {
  return value >= least && value <= most;
}

void check_ranges(const cli::TrainArguments& a) {
  require(within(a.epochs, 0, 1000000), "--epochs");
  require(within(a.batch, 0, 1 << 20), "--batch");  // 0: not given
  require(!a.validation || (*a.validation > 0 && *a.validation < 1), "--validation");
  const auto is_sound = [](auto number) { return std::isfinite(number) && number >= 0; };
  require(!a.lr || is_sound(*a.lr), "--lr");
  for (const auto& [name, number] : a.numbers)
    require(!name.empty() && is_sound(number), "--momentum, --weight-decay, --opt");
  require(is_sound(a.clip_norm) && is_sound(a.clip_value), "--clip-norm, --clip-value");
  require(within(a.workers, 0, 1024), "--workers");
  check_cut(a.cut);
  require(a.limit >= 0, "--limit");
  require(!a.init || (std::isfinite(*a.init) && *a.init > 0), "--init");
  require(!plan::to_string(a.arenas).empty(), "--arenas");
  require(nn::model(a.model).name == a.model, "--model");
  const std::vector<std::string> sets = data::names();
  require(a.dataset.empty() || std::find(sets.begin(), sets.end(), a.dataset) != sets.end(),
          "--dataset");
}

void check_ranges(const cli::PlanArguments& a) {
  check_cut(a.cut);
  require(!a.capacity || (*a.capacity >= 0 && *a.capacity <= plan::Problem::limit), "--capacity");
  require(!a.alignment || std::has_single_bit(static_cast<std::uint64_t>(*a.alignment)), "--align");
  const auto known = plan::strategies();
  require(a.strategy == "auto" || std::any_of(known.begin(), known.end(),
                                              [&](const auto& s) { return s.name == a.strategy; }),
          "--strategy");
}

/// "model:…" is a step of a known model, or refused.
void check_model(const std::string& input) {
  if (!cli::names_model(input)) return;
  try {
    const cli::ModelRequest wanted = cli::parse_model(input);
    require(wanted.model != nullptr, "model");
    require(wanted.batch >= 1 && wanted.batch <= 1 << 20, "batch");
  } catch (const Error& error) {
    require(!error.text().expected.empty(), "a message that says too little");
  }
}

/// Where `--name` and digits stand side by side, that is the number.
void check_digits(const std::vector<std::string>& arguments, const std::string& name,
                  std::uint64_t value) {
  const auto at = std::find(arguments.begin(), arguments.end(), name);
  if (at == arguments.end() || at + 1 == arguments.end()) return;
  const std::string& text = at[1];
  if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos)
    return;
  std::uint64_t number = 0;
  for (const char digit : text) number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  require(number == value, name + " " + text + " read as " + std::to_string(value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto arguments = lines({reinterpret_cast<const char*>(data), size});
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());

  cli::Command app("arenite", "");
  cli::TrainArguments read;
  cli::add_train_options(app, read);
  cli::PlanArguments read_plan;
  const cli::Command* plan = cli::add_plan_options(app, read_plan);
  cli::EvaluateArguments read_evaluate;
  const cli::Command* evaluate = cli::add_evaluate_options(app, read_evaluate);
  cli::PredictArguments read_predict;
  const cli::Command* predict = cli::add_predict_options(app, read_predict);
  const cli::Asked asked =
      cli::read_command_line(app, static_cast<int>(pointers.size()), pointers.data());
  if (asked.command == nullptr) {
    require(!asked.text.empty() && (asked.status == 0 || asked.status == 2), "no message");
    require(asked.status == 0 || asked.text.find("; expected ") != std::string::npos,
            "a message that says too little: " + asked.text);
    return 0;
  }
  check_ranges(read);
  check_ranges(read_plan);
  require(read_evaluate.limit >= 0 && within(read_evaluate.top, 1, 1000000), "evaluate");
  require(within(read_predict.top, 0, 1000000), "predict");
  if (asked.command == plan) {
    require(!read_plan.input.empty(), "INPUT");
    check_model(read_plan.input);
    check_digits(arguments, "--capacity",
                 static_cast<std::uint64_t>(read_plan.capacity.value_or(0)));
    return 0;
  }
  if (asked.command == evaluate) {
    require(!read_evaluate.network.file.empty(), "FILE");
    check_digits(arguments, "--limit", static_cast<std::uint64_t>(read_evaluate.limit));
    return 0;
  }
  if (asked.command == predict) {
    require(!read_predict.images.empty(), "IMAGE");
    return 0;
  }
  check_digits(arguments, "--epochs", static_cast<std::uint64_t>(read.epochs));
  check_digits(arguments, "--batch", static_cast<std::uint64_t>(read.batch));
  check_digits(arguments, "--seed", read.seed);
  check_digits(arguments, "--limit", static_cast<std::uint64_t>(read.limit));
  return 0;
}
