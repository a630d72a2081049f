// `arenite version` and `arenite --version`.
#pragma once

#include "src/cli/command.hpp"

#include <string>

namespace arenite::cli {

struct VersionArguments {
  bool json = false;
};

Command* add_version_options(Command& app, VersionArguments& arguments);
int run_version(const VersionArguments& arguments);

/// This version, and the GPUs that there are.
std::string version_text();

}  // namespace arenite::cli
