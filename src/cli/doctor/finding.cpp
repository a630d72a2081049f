#include "src/cli/doctor/finding.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace arenite::cli::doctor {

using nlohmann::ordered_json;

std::string_view to_string(Mark mark) noexcept {
  return mark == Mark::ok ? "ok" : mark == Mark::note ? "note" : "fails";
}

std::string bytes_text(double bytes) {
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

ordered_json to_json(const Finding& finding) {
  ordered_json problems = ordered_json::array();
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

Finding from_json(const ordered_json& json) {
  Finding finding;
  finding.says = json.at("says");
  finding.details = json.at("details").get<std::vector<std::string>>();
  finding.facts = json.at("facts");
  for (const ordered_json& problem : json.at("problems")) {
    finding.problems.push_back({problem.at("mark") == "note" ? Mark::note : Mark::fails,
                                problem.at("what"), problem.at("mend")});
  }
  return finding;
}

}  // namespace arenite::cli::doctor
