#include <arenite/runtime/devices.hpp>

#include "src/cli/commands.hpp"
#include "src/cli/output.hpp"
#include "src/runtime/starpu.hpp"

#include <spdlog/fmt/fmt.h>

#include <iostream>

namespace arenite::cli {

Command* add_version_options(Command& app, VersionArguments& a) {
  Command& version = add_command(app, "version", "Print versions, and the GPUs that there are");
  version.add_switch("--json", a.json, "as a JSON object (docs/command-line.md)");
  version.statuses = {{exit_ok, "printed"}, {exit_bad_input, "wrong arguments"}};
  return &version;
}

std::string version_text() {
  const auto cuda = runtime::cuda_support();
  std::string text =
      fmt::format("arenite {}\nStarPU {}\nCUDA: ", ARENITE_VERSION, runtime::starpu::version());
  if (cuda.devices.empty()) text += "no device (" + cuda.reason + ")";
  for (const auto& device : cuda.devices) {
    text += fmt::format("{}{} {} ({} MiB)", device.index == 0 ? "" : ", ", device.index,
                        device.name, device.memory >> 20);
  }
  return text;
}

int run_version(const VersionArguments& arguments) {
  if (!arguments.json) {
    std::cout << version_text() << '\n';
    return exit_ok;
  }
  const auto cuda = runtime::cuda_support();
  Json devices = Json::list();
  for (const auto& device : cuda.devices) {
    devices.push_back({{"index", device.index}, {"name", device.name}, {"memory", device.memory}});
  }
  Json gpus{{"built", cuda.built}, {"devices", std::move(devices)}};
  if (!cuda.reason.empty()) gpus["reason"] = cuda.reason;
  std::cout << line_of({{"arenite", ARENITE_VERSION},
                        {"starpu", runtime::starpu::version()},
                        {"cuda", std::move(gpus)}});
  return exit_ok;
}

}  // namespace arenite::cli
