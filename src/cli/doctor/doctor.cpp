#include "src/base/words.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/doctor/checks.hpp"
#include "src/cli/doctor/contained.hpp"
#include "src/cli/help.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/output.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace arenite::cli {
namespace {

using doctor::Finding;
using doctor::Mark;
using doctor::Problem;

struct Check {
  const char* name;
  const char* about;
  Finding (*run)();
  std::chrono::seconds limit;
};

// Sanitizers' builds are slow, and disks may be far away.
constexpr std::array checks{
    Check{"starpu", "its version, and what it was built with", doctor::check_starpu,
          std::chrono::seconds(30)},
    Check{"cpu", "instructions that kernels need, and LIBXSMM's code generator", doctor::check_cpu,
          std::chrono::seconds(60)},
    Check{"processors", "cores, caches and memory, and what of them is left to this process",
          doctor::check_processors, std::chrono::seconds(30)},
    Check{"gpu", "GPUs and their driver; a graph runs on the first", doctor::check_gpu,
          std::chrono::seconds(120)},
    Check{"locking", "whether the main example's memory can be locked", doctor::check_locking,
          std::chrono::seconds(120)},
    Check{"data", "Fashion-MNIST: where it is, and whether it is that", doctor::check_data,
          std::chrono::seconds(120)},
    Check{"folders", "where unpacked data and StarPU's measurements are kept",
          doctor::check_folders, std::chrono::seconds(30)},
    Check{"perf", "what flame graphs are made with", doctor::check_perf, std::chrono::seconds(30)},
    Check{"run", "a graph runs on CPU workers, correct to the bit", doctor::check_run,
          std::chrono::seconds(120)}};

/// As https://no-color.org has it.
bool colours() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string coloured(Mark mark) {
  const int colour = mark == Mark::ok ? 32 : mark == Mark::note ? 33 : 31;
  return fmt::format("\033[{}m{}\033[0m", colour, to_string(mark));
}

void print(const Check& check, const Finding& finding, bool in_colour) {
  const auto indented = [](const std::string& text) { return wrapped("", text, 8); };
  const std::string mark(to_string(finding.mark()));
  std::string text = wrapped(fmt::format("{:<5}  {}", mark, check.name), finding.says, 19);
  if (in_colour) text.replace(0, mark.size(), coloured(finding.mark()));
  for (const std::string& detail : finding.details) text += indented(detail);
  for (const Problem& problem : finding.problems) {
    if (problem.what != finding.says) text += indented(problem.what);
    if (!problem.mend.empty()) text += indented("to mend it: " + problem.mend);
  }
  std::cout << text;
  flush_output();
}

/// "7 ok, 2 notes, 0 fail"
std::string sum(const std::vector<Mark>& marks) {
  const auto count = [&](Mark mark) { return std::ranges::count(marks, mark); };
  return fmt::format("{} ok, {}, {} {}\n", count(Mark::ok), counted(count(Mark::note), "note"),
                     count(Mark::fails), count(Mark::fails) == 1 ? "fails" : "fail");
}

bool wanted(const DoctorArguments& arguments, const Check& check) {
  return arguments.checks.empty() ||
         std::ranges::find(arguments.checks, check.name) != arguments.checks.end();
}

}  // namespace

Command* add_doctor_options(Command& app, DoctorArguments& a) {
  Command& command =
      add_command(app, "doctor", "Check this machine, and say how to mend what it lacks");
  command.about = {
      "A line a check: ok, note (it works, but could be better) or fails, with a way to mend it. "
      "Checks find what training would find: like it they unpack data into the cache and keep "
      "StarPU's measurements, and they change nothing else. Each runs in a process of its own, so "
      "that none can stop the others."};
  std::string help = "only these:";
  for (const Check& check : checks) help += fmt::format("\n{}: {}", check.name, check.about);
  command.add_choices("CHECK", a.checks, names_of(checks), help);
  command.add_switch("--json", a.json, "as a JSON object (docs/command-line.md)");
  command.examples = {{"doctor", "everything: some seconds"},
                      {"doctor data folders", "only these two"},
                      {"doctor --json | jq '.checks[].mark'", "for a program"}};
  command.statuses = {{exit_ok, "nothing fails; there may be notes"},
                      {exit_failure, "a check fails"},
                      {exit_bad_input, "wrong arguments"},
                      {exit_interrupted, "interrupted"}};
  command.read_on = "docs/command-line.md, docs/gpu.md";
  return &command;
}

int run_doctor(const DoctorArguments& arguments) {
  exit_on_interrupts();
  const bool in_colour = colours();
  std::vector<Mark> marks;
  Json all = Json::list();
  for (const Check& check : checks) {
    if (!wanted(arguments, check)) continue;
    const Finding finding = doctor::contained(check.run, check.limit);
    marks.push_back(finding.mark());
    if (!arguments.json) {
      print(check, finding, in_colour);
      continue;
    }
    Json object{{"check", check.name}};
    object.update(to_json(finding));
    all.push_back(std::move(object));
  }
  const bool failed = std::ranges::find(marks, Mark::fails) != marks.end();
  if (arguments.json) {
    std::cout << line_of(
        {{"arenite", ARENITE_VERSION}, {"ok", !failed}, {"checks", std::move(all)}});
  } else {
    std::cout << sum(marks);
  }
  return failed ? exit_failure : exit_ok;
}

}  // namespace arenite::cli
