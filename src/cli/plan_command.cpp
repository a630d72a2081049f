// `arenite plan`: reads a problem, plans it or checks a plan of it, and writes what was asked for.

#include <arenite/error.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/refuse.hpp"
#include "src/base/words.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/output.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/plan_input.hpp"
#include "src/cli/plan_subject.hpp"

#include <spdlog/fmt/fmt.h>

#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace arenite::cli {
namespace {

/// A file to write. That it can be made shows before the work; it is not there meanwhile, so that
/// an interrupt leaves none.
class Output {
 public:
  Output(std::string option, std::string path)
      : option_(std::move(option)), path_(std::move(path)) {
    open();
    file_.reset();
  }
  template <class Text>
  void write(Text text) {
    open();
    if (file_) file_->write(text());
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  void open() {
    if (!path_.empty()) file_ = std::make_unique<AtomicFile>(path_, option_ + " '" + path_ + "'");
  }

  std::string option_;
  std::string path_;
  std::unique_ptr<AtomicFile> file_;
};

void refuse_sizes(const PlanArguments& arguments, const char* what, const char* hint) {
  if (arguments.sizes.empty()) return;
  refuse(std::string("--size for ") + what, "a graph script", "'" + arguments.input + "'", hint);
}

void refuse_compiler(const PlanArguments& arguments) {
  const CutArguments& cut = arguments.cut;
  const char* option = arguments.passes         ? "--passes"
                       : arguments.graphs       ? "--graphs"
                       : arguments.workers != 0 ? "--workers"
                       : cut.shards != 0        ? "--shards"
                       : cut.lanes != 0         ? "--lanes"
                       : cut.at_once != 0       ? "--at-once"
                                                : nullptr;
  if (option == nullptr) return;
  refuse(std::string(option) + " for a table", "a graph script or a model",
         "'" + arguments.input + "'");
}

std::unique_ptr<PlanSubject> read_subject(const PlanArguments& arguments) {
  const auto refuse_programs = [&](const char* what) {
    if (arguments.programs)
      refuse(std::string("--programs for ") + what, "a graph script", "'" + arguments.input + "'");
  };
  if (names_model(arguments.input)) {
    refuse_programs("a model");
    refuse_sizes(arguments, "a model", "its batch is said with it, as in model:cnn2?batch=32");
    return model_subject(arguments);
  }
  std::string text = read_input(arguments.input);
  if (is_script(arguments.input, text)) return script_subject(text, arguments);
  refuse_sizes(arguments, "a table", "");
  refuse_programs("a table");
  refuse_compiler(arguments);
  return table_subject(std::move(text), arguments);
}

/// Without reuse, each in a block of its own.
std::int64_t bytes_in_sum(const plan::Problem& problem) {
  std::int64_t sum = 0;
  for (const plan::Buffer& buffer : problem.buffers()) {
    sum += round_up(buffer.bytes, problem.granule());
  }
  return sum;
}

std::string summary(const PlanSubject& subject, const plan::Plan& plan) {
  const plan::Problem& problem = subject.problem();
  std::string text =
      subject.title() + fmt::format("{} of {} bytes in sum\n",
                                    counted(static_cast<std::int64_t>(problem.size()), "buffer"),
                                    digits(bytes_in_sum(problem)));
  for (const plan::SpacePlan& space : plan.spaces) {
    const std::string gap =
        space.optimal ? "optimal: proved"
                      : fmt::format("at most {:.2f} % above the optimum",
                                    100.0 * static_cast<double>(space.peak - space.lower_bound) /
                                        static_cast<double>(space.lower_bound));
    text += fmt::format("{}: peak {} bytes, {} ({})\n", to_string(space.space), digits(space.peak),
                        gap, space.strategy);
    text += fmt::format("  lower bound {} ({}), max-live {}\n", digits(space.lower_bound),
                        plan::to_string(space.proof), digits(space.max_live));
  }
  return text;
}

std::optional<plan::Shortfall> shortfall_of(const PlanArguments& arguments,
                                            const PlanSubject& subject, const plan::Plan& plan) {
  return plan::find_shortfall(
      subject.problem(), plan,
      arguments.capacity.value_or(std::numeric_limits<std::int64_t>::max()));
}

/// What the plan's own JSON says, in the same words, but not of each buffer.
Json summary_object(const PlanArguments& arguments, const PlanSubject& subject,
                    const plan::Plan& plan, const std::optional<plan::Shortfall>& shortfall,
                    const Json& more) {
  const plan::Problem& problem = subject.problem();
  Json object{{"input", arguments.input},
              {"kind", subject.kind()},
              {"buffer_count", problem.size()},
              {"bytes_in_sum", bytes_in_sum(problem)}};
  const Json said = parse_json(plan::to_json(plan, shortfall));
  for (const auto& [name, value] : said.members()) {
    if (name != "format" && name != "buffers" && name != "reuse") object[name] = value;
  }
  object.update(more);
  return object;
}

/// Fields for the middle of a JSON object.
std::string fields_text(const Json& fields) {
  std::string text;
  for (const auto& [name, value] : fields.members())
    text += (text.empty() ? "" : ", ") + Json(name).dump() + ": " + value.dump();
  return text;
}

/// The status, and on standard error what is missing.
int judge(const PlanSubject& subject, const std::optional<plan::Shortfall>& shortfall) {
  if (!shortfall) return exit_ok;
  std::cout << std::flush;
  std::cerr << "arenite: " << Error(plan::describe(subject.problem(), *shortfall)).what() << '\n';
  return exit_capacity;
}

int run_verify(const PlanArguments& arguments, const PlanSubject& subject) {
  const plan::Plan plan = plan::read_json(arguments.verify);
  plan::verify(subject.problem(), plan);
  const auto shortfall = shortfall_of(arguments, subject, plan);
  if (arguments.json) {
    std::cout << line_of(
        summary_object(arguments, subject, plan, shortfall, {{"verified", arguments.verify}}));
    return judge(subject, shortfall);
  }
  std::cout << "sound: " << summary(subject, plan);
  for (const plan::SpacePlan& space : plan.spaces) {
    if (space.proof == plan::Proof::search) {
      std::cout << "  (the lower bound of " << to_string(space.space)
                << " is what a search claims to have proved: not confirmed)\n";
    }
  }
  return judge(subject, shortfall);
}

}  // namespace

int run_plan(const PlanArguments& arguments) {
  exit_on_interrupts();
  // The input, too, is kept: a picture of it is no table.
  refuse_shared_files({{"INPUT", names_model(arguments.input) ? std::string() : arguments.input},
                       {"--out", arguments.out},
                       {"--csv", arguments.csv},
                       {"--svg", arguments.svg}});
  const std::unique_ptr<PlanSubject> subject = read_subject(arguments);
  if (!arguments.verify.empty()) return run_verify(arguments, *subject);

  Output out("--out", arguments.out);
  Output csv("--csv", arguments.csv);
  Output svg("--svg", arguments.svg);
  const plan::Plan plan = subject->solve();
  plan::verify(subject->problem(), plan);
  const auto shortfall = shortfall_of(arguments, *subject, plan);

  out.write([&] { return plan::to_json(plan, shortfall, fields_text(subject->fields())); });
  csv.write([&] { return subject->csv(plan); });
  svg.write([&] { return plan::to_svg(plan); });
  for (Output* output : {&out, &csv, &svg}) output->commit();
  if (arguments.json) {
    std::cout << line_of(summary_object(arguments, *subject, plan, shortfall, subject->fields()));
  } else {
    std::cout << summary(*subject, plan) << subject->report()
              << fmt::format("planned in {:.1f} ms\n", plan.milliseconds);
  }
  return judge(*subject, shortfall);
}

}  // namespace arenite::cli
