// The options of `arenite plan`.
#pragma once

#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/step_plan.hpp>

#include "src/cli/command.hpp"
#include "src/cli/cut_arguments.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace arenite::cli {

struct PlanArguments {
  std::string input;
  bool json = false;
  std::string out;
  std::string csv;
  std::string svg;
  std::string verify;
  std::string strategy = "auto";
  plan::Effort effort = plan::Effort::normal;
  std::optional<std::int64_t> capacity;
  std::optional<std::int64_t> alignment;    ///< of a table; none: not given
  std::optional<plan::InFlight> in_flight;  ///< none: not given
  graph::SizeValues sizes;                  ///< of a script
  bool programs = false;                    ///< of a script: those of a model
  bool passes = false, graphs = false;      ///< of a script or model: what the compiler did
  int workers = 0;                          ///< 0: as many as `arenite train` takes
  CutArguments cut;
};

/// Adds the subcommand to the parser, which owns it and fills `a` while it reads.
Command* add_plan_options(Command& app, PlanArguments& a);

}  // namespace arenite::cli
