#include "src/cli/plan_files.hpp"

#include <arenite/plan/draw.hpp>
#include <arenite/plan/json.hpp>

#include <utility>

namespace arenite::cli {
namespace {

std::unique_ptr<AtomicFile> open(const std::string& option, const std::filesystem::path& path) {
  return std::make_unique<AtomicFile>(path, option + " '" + path.string() + "'");
}

}  // namespace

PlanFiles::PlanFiles(const std::string& svg, const std::string& json) {
  const auto add = [&](const std::string& option, const std::string& path, auto text) {
    if (!path.empty()) kinds_.push_back({option, path, text, open(option, path)});
  };
  add("--plan-svg", svg, plan::to_svg);
  add("--plan-json", json, [](const plan::Plan& packing) { return plan::to_json(packing); });
}

void PlanFiles::write(const plan::StepPlan& plan) {
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (Kind& kind : kinds_) {
    // The layout `two` has a picture a block.
    for (std::size_t i = 0; i < plan.packings.size(); ++i) {
      std::filesystem::path numbered = kind.path;
      if (i > 0) numbered += "." + std::to_string(i);
      files.push_back(i == 0 ? std::move(kind.first) : open(kind.option, numbered));
      files.back()->write(kind.text(plan.packings[i]));
    }
  }
  for (const auto& file : files) file->commit();
}

}  // namespace arenite::cli
