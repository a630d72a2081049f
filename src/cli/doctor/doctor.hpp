// `arenite doctor`: whether this machine can train, and how to mend what keeps it from it.
#pragma once

#include "src/cli/command.hpp"

#include <string>
#include <vector>

namespace arenite::cli {

struct DoctorArguments {
  std::vector<std::string> checks;  ///< none: all of them
  bool json = false;
};

Command* add_doctor_options(Command& app, DoctorArguments& arguments);
/// exit_failure where a check fails.
int run_doctor(const DoctorArguments& arguments);

}  // namespace arenite::cli
