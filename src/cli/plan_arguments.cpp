#include "src/cli/plan_arguments.hpp"

#include "src/cli/checks.hpp"

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

std::optional<std::int64_t> parse_alignment(const std::string& text) {
  const auto bytes = whole_number(text, 1, std::uint64_t{1} << 40);
  if (!bytes || !std::has_single_bit(*bytes)) return std::nullopt;
  return static_cast<std::int64_t>(*bytes);
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
      "plan", "Give every buffer of a table its place, in the least memory that can be found");
  plan->add_option(
          "INPUT", a.input,
          "a CSV with the columns id, lower, upper (or end, inclusive) and size; optional are "
          "alignment, space and offset")
      ->required()
      ->check(not_empty());
  plan->add_option("--out", a.out, "write the plan as JSON")->check(not_empty());
  plan->add_option("--csv", a.csv, "write the input's rows with an offset each")
      ->check(not_empty());
  plan->add_option("--svg", a.svg, "draw the plan")->check(not_empty());
  add_option<plan::Effort>(
      *plan, "--effort", a.effort, parse_effort, "one of fast, default, max",
      "how long to search where the first plan may not be the best: some 50 ms, 3 s, "
      "or 5 minutes, counted in steps: the plan is the same on every machine")
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
  add_option<std::int64_t>(*plan, "--align", a.alignment, parse_alignment,
                           "a power of two of at most 2^40",
                           "alignment of rows without one of their own, in bytes")
      ->type_name("INT")
      ->default_str("1");
  plan->add_option("--verify", a.verify,
                   "check this JSON plan, whoever made it, against the input instead of making one")
      ->check(not_empty());
  return plan;
}

}  // namespace arenite::cli
