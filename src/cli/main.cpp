#include <arenite/error.hpp>
#include <arenite/runtime/devices.hpp>

#include "src/cli/commands.hpp"

#include <spdlog/fmt/fmt.h>

#include <iostream>

namespace {

std::string version_text() {
  const auto cuda = arenite::runtime::cuda_support();
  std::string text = "arenite " ARENITE_VERSION "\nCUDA: ";
  if (cuda.devices.empty()) text += "no device (" + cuda.reason + ")";
  for (const auto& device : cuda.devices) {
    text += fmt::format("{}{} {} ({} MiB)", device.index == 0 ? "" : ", ", device.index,
                        device.name, device.memory >> 20);
  }
  return text;
}

int complain(const char* message, int status) {
  std::cout << std::flush;
  std::cerr << "arenite: " << message << '\n';
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace arenite;
  CLI::App app{
      "Arenite trains neural networks with their memory planned and proven before the first step."};
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 a run failed, 2 wrong arguments, files or data, 130 interrupted.");
  const cli::Command train = cli::add_train(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty() && !app.remaining().empty()) {
      const std::string what = "unknown subcommand or option '" + app.remaining().front() +
                               "'; expected train (hint: see --help)";
      return complain(what.c_str(), cli::exit_bad_input);
    }
    return complain((std::string(error.what()) + " (hint: see --help)").c_str(),
                    cli::exit_bad_input);
  }
  try {
    const int status = train();
    // What was not written was not reported.
    if (!std::cout.flush()) return complain("the output could not be written", cli::exit_failure);
    return status;
  } catch (const Failure& error) {
    return complain(error.what(), cli::exit_failure);
  } catch (const Error& error) {
    return complain(error.what(), cli::exit_bad_input);
  } catch (const std::exception& error) {
    return complain(error.what(), cli::exit_failure);
  }
}
