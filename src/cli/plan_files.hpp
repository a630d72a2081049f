// The pictures of `--plan-svg` and `--plan-json`.
#pragma once

#include <arenite/plan/step_plan.hpp>

#include "src/base/atomic_file.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace arenite::cli {

class PlanFiles {
 public:
  /// An empty path: not wanted. Throws Error when a file cannot be made there.
  PlanFiles(const std::string& svg, const std::string& json);

  /// One of each a packing: the first has the plain name, others a number behind it. All of them
  /// are written before the first one gets its name. Throws Error, also on a full disk.
  void write(const plan::StepPlan& plan);

 private:
  struct Kind {
    std::string option;
    std::filesystem::path path;
    std::string (*text)(const plan::Plan&);
    std::unique_ptr<AtomicFile> first;
  };

  std::vector<Kind> kinds_;
};

}  // namespace arenite::cli
