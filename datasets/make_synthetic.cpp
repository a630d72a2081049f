// Writes the synthetic set as IDX files: arenite_make_synthetic FOLDER [--seed N] [--train N]
// [--test N]
#include <arenite/data/dataset.hpp>

#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"

#include <iostream>
#include <limits>

int main(int argc, char** argv) {
  using namespace arenite;
  std::string folder;
  data::SyntheticOptions options;
  cli::Command app("arenite_make_synthetic",
                   "Draw a small set of garments in ten classes and write it as four IDX files");
  app.add_path("FOLDER", folder, "FOLDER", "where to write; created if missing")->required();
  const auto number = [&](const char* name, auto& into, std::uint64_t least, std::uint64_t most,
                          const char* help) {
    cli::add_whole_number(app, name, into, least, most, help)->default_str(std::to_string(into));
  };
  number("--seed", options.seed, 0, std::numeric_limits<std::uint64_t>::max(),
         "another seed draws other samples");
  number("--train", options.train, 10, 1'000'000, "number of training images");
  number("--test", options.test, 10, 1'000'000, "number of test images");
  app.run = [&] {
    const data::ImageData data = data::synthetic(options);
    data::save_images(data, folder);
    std::cout << data.train.count << " training and " << data.test.count << " test images in "
              << folder << '\n';
    return 0;
  };
  return cli::run_command(app, argc, argv);
}
