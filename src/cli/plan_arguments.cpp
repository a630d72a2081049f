#include "src/cli/plan_arguments.hpp"

#include <arenite/nn/nn.hpp>

#include "src/cli/checks.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <bit>
#include <vector>

namespace arenite::cli {
namespace {

/// No shape has more elements.
constexpr std::uint64_t max_size = std::uint64_t{1} << 48;

std::optional<std::int64_t> parse_alignment(const std::string& text) {
  const auto bytes = whole_number(text, 1, std::uint64_t{1} << 40);
  return bytes && std::has_single_bit(*bytes) ? bytes : std::nullopt;
}

std::optional<plan::InFlight> parse_in_flight(const std::string& text) {
  if (text == "lanes") return plan::InFlight::lanes();
  if (text == "unlimited") return plan::InFlight::unlimited();
  const auto tasks = whole_number(text, 1, plan::Problem::limit);
  if (!tasks) return std::nullopt;
  return plan::InFlight(*tasks);
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

void add_sizes(Command& plan, PlanArguments& a) {
  const std::string what = "NAME=N, N " + whole_number_text(1, max_size);
  const auto refuse = [what](const std::string& text) {
    return parse_size(text) ? std::string() : "'" + text + "'; expected " + what;
  };
  const auto take = [&a](const std::string& text) {
    const auto size = *parse_size(text);
    if (!a.sizes.insert(size).second)
      throw Refusal{"'" + size.first + "' twice; expected each once"};
  };
  plan.add({.names = {"--size"},
            .help = "the value of a size that a script leaves open, as in [rows<=64, 784], for one "
                    "run; those not given are planned at their upper bounds. Once for each",
            .kind = "NAME=N",
            .rule = {"", refuse},
            .take = take,
            .repeats = true});
}

void add_input(Command& plan, PlanArguments& a) {
  const std::vector<std::string> models = names_of(nn::models());
  Option* input =
      plan.add_path(
              "INPUT", a.input, "FILE",
              "what to plan:\n"
              "a table: a CSV with the columns id, lower, upper (or end, inclusive) and size; "
              "optional are alignment, space, alias, gaps and offset\n"
              "a graph script: what a model of it takes, one training step of it where it trains; "
              "kernels that it names are kept. A file is a script if its name ends with .arenite, "
              "or "
              "not with .csv and it begins with $, #, formula or result =\n" +
                  fmt::format("model:NAME?batch=64&mode=train, a step of a model as "
                              "`arenite train` plans it, with mode train or inference. Models "
                              "are {}",
                              fmt::join(models, ", ")))
          ->required();
  for (const std::string& model : models) input->offer.words.push_back("model:" + model);
}

void add_problem(Command& plan, PlanArguments& a) {
  plan.heading("What is planned");
  add_sizes(plan, a);
  const std::uint64_t most = plan::Problem::limit;
  add_option<std::int64_t>(
      plan, "--align", a.alignment, parse_alignment, "a power of two of at most 2^40",
      fmt::format("bytes that rows without an alignment of their own are aligned to; tables only: "
                  "buffers of scripts and models are aligned to {}",
                  default_alignment))
      ->type_name("N")
      ->default_str("1");
  add_option<plan::InFlight>(
      plan, "--in-flight", a.in_flight, parse_in_flight,
      "lanes, unlimited or " + whole_number_text(1, most),
      "tasks that may be under way at once, which reuse then relies on, adding edges between "
      "tasks\n"
      "lanes: each lane's tasks in their order, as training has it; the default of scripts and "
      "models\n"
      "N: task i ends before task i + N begins. In a table, a moment is a task: bytes are free "
      "N - 1 moments after their buffer's end; the default is 1\n"
      "unlimited: no edges, so that reuse follows the data alone")
      ->type_name("HOW")
      ->offers({"lanes", "unlimited"});
  add_option<std::int64_t>(
      plan, "--capacity", a.capacity,
      [](const std::string& text) -> std::optional<std::int64_t> {
        if (const auto bytes = bytes_of(text)) return bytes;
        return whole_number(text, 0, most);  // nothing at all is a capacity, too
      },
      a_number_of_bytes, "bytes that no space may pass, as in 64MiB; status 3 if one does")
      ->type_name("BYTES");
}

void add_compiler(Command& plan, PlanArguments& a) {
  plan.heading("How a script or a model becomes tasks");
  add_cut(plan, a.cut);
  add_whole_number(plan, "--workers", a.workers, 1, 1024,
                   "CPU workers that the step's time is estimated for, and as many shards planned "
                   "at once (else as many as `arenite train` takes)");
  plan.add_switch("--programs", a.programs,
                  "of a graph script: list what a model of it has, to train, to evaluate, and for "
                  "each of its entries, at the upper bounds of sizes and at those given, and how "
                  "these fit into the same blocks");
  plan.add_switch("--passes", a.passes,
                  "list what each pass of the compiler did, what it left as it was, and why: the "
                  "kernels, too, that were refused for an op");
  plan.add_switch("--graphs", a.graphs,
                  "write the graph to standard output as a script, as it was given and behind each "
                  "pass that changed it");
}

void add_search(Command& plan, PlanArguments& a) {
  plan.heading("How the plan is looked for");
  using plan::Effort;
  add_named<Effort>(
      plan, "--effort", a.effort,
      {{"fast", Effort::fast}, {"default", Effort::normal}, {"max", Effort::max}},
      "how long to search where the first plan may not be the best: some 50 ms, 3 s (10 s for tens "
      "of thousands of buffers), or 5 minutes, counted in steps: the plan is the same on every "
      "machine")
      ->type_name("NAME");
  std::vector<std::string> names{"auto"};
  std::string help =
      "how to place the buffers:\nauto: the best of several, until one is proved optimal";
  for (const plan::StrategyInfo& info : plan::strategies()) {
    names.emplace_back(info.name);
    help += "\n" + std::string(info.name) + ": " + std::string(info.summary);
  }
  plan.add_choice("--strategy", a.strategy, names, help)->default_str(a.strategy);
}

void add_outputs(Command& plan, PlanArguments& a) {
  plan.heading("What is written");
  plan.add_switch("--json", a.json,
                  "write the summary to standard output as a JSON object, in place of words "
                  "(docs/command-line.md)");
  plan.add_path("--out", a.out, "FILE", "write the plan as JSON, an offset for each buffer");
  plan.add_path("--csv", a.csv, "FILE",
                "write a table's own rows with an offset each, else a row for each buffer of the "
                "step; its lifetimes are those of one task after the other, so with more tasks in "
                "flight they say less than the plan had to keep to");
  plan.add_path("--svg", a.svg, "FILE", "draw the plan");
  plan.add_path("--verify", a.verify, "FILE",
                "check this JSON plan, whoever made it, against the input instead of making one; "
                "with the same --in-flight, and without what says how one is made or written")
      ->excluded = {"--out",      "--csv",      "--svg",    "--effort",
                    "--strategy", "--programs", "--passes", "--graphs"};
}

}  // namespace

Command* add_plan_options(Command& app, PlanArguments& a) {
  Command& plan = add_command(
      app, "plan", "Place the buffers of a table, a graph script or a model in the least memory");
  plan.about = {
      "Every buffer gets an offset, so that no two that may be alive together overlap. The peak is "
      "the lowest that can be found, and where it is proved that none is lower, the summary says "
      "so: \"optimal: proved\"."};
  add_input(plan, a);
  add_problem(plan, a);
  add_compiler(plan, a);
  add_search(plan, a);
  add_outputs(plan, a);
  for (const char* name : {"batch", "mode"})
    plan.elsewhere[name] = fmt::format("model:NAME?{}=…", name);
  plan.examples = {
      {"plan buffers.csv --csv offsets.csv --svg plan.svg", "a table of your own, and a picture"},
      {"plan buffers.csv --capacity 65536", "does it fit? else status 3, and why"},
      {"plan \"model:cnn2?batch=64\"", "the step that arenite train runs"},
      {"plan script.txt --size rows=40", "a graph script, at one of its sizes"},
      {"plan buffers.csv --verify plan.json", "is this plan sound?"}};
  plan.statuses = {
      {exit_ok, "planned, or found sound"},
      {exit_failure, "the input was right, but the run failed"},
      {exit_bad_input, "wrong arguments or input; an unsound plan; a file that cannot be written"},
      {exit_capacity, "planned, but more bytes are needed than the capacity"},
      {exit_interrupted, "interrupted: no file was written"}};
  plan.read_on = "docs/command-line.md, docs/scripts.md";
  return &plan;
}

}  // namespace arenite::cli
