// Writes the synthetic set as IDX files: arenite_make_synthetic FOLDER [--seed N] [--train N]
// [--test N]
#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>

#include <CLI/CLI.hpp>

#include <iostream>

int main(int argc, char** argv) {
  std::string folder;
  arenite::data::SyntheticOptions options;
  CLI::App app("Draw a small set of garments in ten classes and write it as four IDX files.");
  app.add_option("folder", folder, "where to write; created if missing")->required();
  app.add_option("--seed", options.seed, "another seed draws other samples")->capture_default_str();
  app.add_option("--train", options.train, "number of training images")->capture_default_str();
  app.add_option("--test", options.test, "number of test images")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const arenite::data::ImageData data = arenite::data::synthetic(options);
    arenite::data::save_images(data, folder);
    std::cout << data.train.count << " training and " << data.test.count << " test images in "
              << folder << '\n';
  } catch (const arenite::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
