#include <arenite/error.hpp>
#include <arenite/runtime/devices.hpp>

#include "src/cli/command_line.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/progress.hpp"
#include "src/cli/train_arguments.hpp"

#include <spdlog/fmt/fmt.h>

#include <csignal>
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

int complain(const std::string& message, int status) {
  std::cout << std::flush;
  std::cerr << "arenite: " << message << '\n';
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace arenite;
  // What cannot be written, for want of a reader or beyond a limit, is an error and no reason to
  // die.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  CLI::App app{
      "Arenite trains neural networks with their memory planned and proven before the first step."};
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 a run failed, 2 wrong arguments, files or data, 3 a plan needs more "
      "than the capacity, 130 interrupted.");
  cli::TrainArguments arguments;
  cli::add_train_options(app, arguments);
  cli::PlanArguments plan_arguments;
  const CLI::App* plan = cli::add_plan_options(app, plan_arguments);
  const auto ending = cli::read_command_line(app, argc, argv);
  if (ending && ending->status != cli::exit_ok) return complain(ending->text, ending->status);
  try {
    if (ending) std::cout << ending->text;
    const int status = ending           ? ending->status
                       : plan->parsed() ? cli::run_plan(plan_arguments)
                                        : cli::run_train(arguments);
    cli::flush_output();
    return status;
  } catch (const Failure& error) {
    return complain(error.what(), cli::exit_failure);
  } catch (const Error& error) {
    return complain(error.what(), cli::exit_bad_input);
  } catch (const std::exception& error) {
    return complain(error.what(), cli::exit_failure);
  }
}
