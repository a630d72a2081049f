#include "src/cli/plan_arguments.hpp"

#include <arenite/nn/nn.hpp>

#include "src/cli/checks.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <bit>
#include <utility>
#include <vector>

namespace arenite::cli {
namespace {

std::optional<plan::Effort> parse_effort(const std::string& text) {
  constexpr std::array<std::pair<const char*, plan::Effort>, 3> efforts = {
      {{"fast", plan::Effort::fast},
       {"default", plan::Effort::normal},
       {"max", plan::Effort::max}}};
  for (const auto& [name, effort] : efforts) {
    if (text == name) return effort;
  }
  return std::nullopt;
}

/// No shape has more elements.
constexpr std::uint64_t max_size = std::uint64_t{1} << 48;

using Alignment = std::optional<std::int64_t>;

std::optional<Alignment> parse_alignment(const std::string& text) {
  const auto bytes = whole_number(text, 1, std::uint64_t{1} << 40);
  if (!bytes || !std::has_single_bit(*bytes)) return std::nullopt;
  return std::make_optional<Alignment>(static_cast<std::int64_t>(*bytes));
}

std::optional<std::optional<plan::InFlight>> parse_in_flight(const std::string& text) {
  using Given = std::optional<plan::InFlight>;
  if (text == "lanes") return Given(plan::InFlight::lanes());
  if (text == "unlimited") return Given(plan::InFlight::unlimited());
  const auto tasks = whole_number(text, 1, plan::Problem::limit);
  if (!tasks) return std::nullopt;
  return Given(plan::InFlight(*tasks));
}

/// "rows=40"
std::optional<graph::SizeValues::value_type> parse_size(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == 0 || at == std::string::npos) return std::nullopt;
  const auto size = whole_number(text.substr(at + 1), 1, max_size);
  if (!size) return std::nullopt;
  return std::make_optional<graph::SizeValues::value_type>(text.substr(0, at),
                                                           static_cast<std::int64_t>(*size));
}

void add_sizes(CLI::App& plan, PlanArguments& a) {
  const std::string what = "NAME=N, N " + whole_number_text(1, max_size);
  const auto refuse = [what](const std::string& text) {
    return parse_size(text) ? std::string() : "'" + text + "'; expected " + what;
  };
  const auto take = [&a](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const auto size = *parse_size(text);
      if (!a.sizes.insert(size).second)
        throw CLI::ValidationError("--size", "'" + size.first + "' twice; expected each once");
    }
  };
  plan.add_option_function<std::vector<std::string>>(
          "--size", take,
          "the value of a size that a script leaves open, as in [rows<=64, 784], for one run; "
          "those not given are planned at their upper bounds. Once for each")
      ->check(CLI::Validator(refuse, ""))
      ->allow_extra_args(false)
      ->type_name("NAME=N");
}

std::string input_help() {
  std::string models;
  for (const nn::NamedModel& model : nn::models())
    models += (models.empty() ? "" : ", ") + model.name;
  return "one of three\n"
         "a table: a CSV with the columns id, lower, upper (or end, inclusive) and size; optional "
         "are alignment, space, alias, gaps and offset\n"
         "a graph script: kernels and workspaces are those it names, results take the bytes of "
         "operands that nobody needs any more. A file is a script if its name does not end with "
         ".csv and it begins with $, # or "
         "result =\n"
         "model:NAME?batch=64&mode=train&lanes=2, a step of a model as `arenite train` plans it, "
         "with mode train or inference; without lanes as many as training takes. Models are " +
         models;
}

std::string strategy_help() {
  std::string text =
      "how to place the buffers:\nauto: the best of several, until one is proved optimal";
  for (const plan::StrategyInfo& info : plan::strategies()) {
    text += "\n" + std::string(info.name) + ": " + std::string(info.summary);
  }
  return text;
}

}  // namespace

CLI::App* add_plan_options(CLI::App& app, PlanArguments& a) {
  CLI::App* plan = app.add_subcommand(
      "plan",
      "Give every buffer of a table, a graph or a model its place, in the least memory that can be "
      "found");
  plan->add_option("INPUT", a.input, input_help())->required()->check(not_empty());
  plan->add_option("--out", a.out, "write the plan as JSON")->check(not_empty());
  plan->add_option(
          "--csv", a.csv,
          "write a table's own rows with an offset each, else a row for each buffer of the step; "
          "its lifetimes are those of one task after the other, so with more tasks in flight "
          "they say less than the plan had to keep to")
      ->check(not_empty());
  plan->add_option("--svg", a.svg, "draw the plan")->check(not_empty());
  add_option<plan::Effort>(
      *plan, "--effort", a.effort, parse_effort, "one of fast, default, max",
      "how long to search where the first plan may not be the best: some 50 ms, 3 s "
      "(10 s for tens of thousands of buffers), or 5 minutes, counted in steps: the plan is the "
      "same on every machine")
      ->default_str("default");
  std::vector<std::string> names{"auto"};
  for (const plan::StrategyInfo& info : plan::strategies()) names.emplace_back(info.name);
  plan->add_option("--strategy", a.strategy, strategy_help())
      ->check(one_of(names))
      ->capture_default_str();
  const std::uint64_t most = plan::Problem::limit;
  add_option<std::optional<std::int64_t>>(
      *plan, "--capacity", a.capacity,
      [most](const std::string& text) -> std::optional<std::optional<std::int64_t>> {
        const auto bytes = whole_number(text, 0, most);
        if (!bytes) return std::nullopt;
        return std::make_optional<std::optional<std::int64_t>>(static_cast<std::int64_t>(*bytes));
      },
      whole_number_text(0, most), "bytes that no space may pass; status 3 if one does")
      ->type_name("INT");
  add_option<Alignment>(
      *plan, "--align", a.alignment, parse_alignment, "a power of two of at most 2^40",
      fmt::format("bytes that rows without an alignment of their own are aligned to; tables only: "
                  "buffers of scripts and models are aligned to {}",
                  default_alignment))
      ->type_name("INT")
      ->default_str("1");
  add_option<std::optional<plan::InFlight>>(
      *plan, "--in-flight", a.in_flight, parse_in_flight,
      "lanes, unlimited or " + whole_number_text(1, most),
      "tasks that may be under way at once, which reuse then relies on, adding edges between "
      "tasks\nlanes: each lane's tasks in their order, as training has it; the default of scripts "
      "and models\nN: task i ends before task i + N begins. In a table, a moment is a task: bytes "
      "are free N - 1 moments after their buffer's end; the default is 1\nunlimited: no edges, so "
      "that reuse follows the data alone")
      ->type_name("N");
  add_sizes(*plan, a);
  plan->add_option(
          "--verify", a.verify,
          "check this JSON plan, whoever made it, against the input instead of making one; "
          "with the same --in-flight")
      ->check(not_empty())
      ->excludes("--out", "--csv", "--svg", "--effort", "--strategy");
  return plan;
}

}  // namespace arenite::cli
