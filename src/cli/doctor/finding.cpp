#include "src/cli/doctor/finding.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace arenite::cli::doctor {

std::string_view to_string(Mark mark) noexcept {
  return mark == Mark::ok ? "ok" : mark == Mark::note ? "note" : "fails";
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr double kib = 1024;
  if (bytes < kib * kib) return fmt::format("{:.4g} KiB", bytes / kib);
  if (bytes < kib * kib * kib) return fmt::format("{:.4g} MiB", bytes / (kib * kib));
  return fmt::format("{:.4g} GiB", bytes / (kib * kib * kib));
}

void Finding::fails(const ErrorText& error) {
  fails((error.where.empty() ? "" : error.where + ": ") + error.found + "; expected " +
            error.expected,
        error.hint);
}

Mark Finding::mark() const noexcept {
  Mark worst = Mark::ok;
  for (const Problem& problem : problems) worst = std::max(worst, problem.mark);
  return worst;
}

Json to_json(const Finding& finding) {
  Json problems = Json::list();
  for (const Problem& problem : finding.problems) {
    problems.push_back(
        {{"mark", to_string(problem.mark)}, {"what", problem.what}, {"mend", problem.mend}});
  }
  return {{"mark", to_string(finding.mark())},
          {"says", finding.says},
          {"details", finding.details},
          {"problems", std::move(problems)},
          {"facts", finding.facts}};
}

Finding from_json(const Json& json) {
  Finding finding;
  finding.says = json.at("says").text();
  for (const Json& line : json.at("details").items()) finding.details.push_back(line.text());
  finding.facts = json.at("facts");
  for (const Json& problem : json.at("problems").items()) {
    finding.problems.push_back({problem.at("mark") == "note" ? Mark::note : Mark::fails,
                                problem.at("what").text(), problem.at("mend").text()});
  }
  return finding;
}

}  // namespace arenite::cli::doctor
