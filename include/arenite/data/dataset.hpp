// Image sets for training: where they are found, and what a program sees of them.
//
//   auto data = data::find("fashion-mnist");            // or data::fashion_mnist(folder)
//   auto image = data.train.image(0);                   // 28·28·1 bytes, rows first
//
// Pixels stay bytes in the file's own pages; whoever feeds a network divides by 255. A set may be
// read from any number of threads. Copies share the bytes, which live as long as the last copy; a
// `Split` alone does not keep them alive.
#pragma once

#include <arenite/samples.hpp>
#include <arenite/types.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::data {

/// Labelled images, [N, H, W, C] bytes. Views: owns nothing.
struct Split {
  std::span<const std::uint8_t> images;  ///< count · height · width · channels bytes
  std::span<const std::uint8_t> labels;  ///< count bytes, each below `classes`
  std::int64_t count = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  int classes = 0;

  std::int64_t image_bytes() const noexcept { return height * width * channels; }
  std::span<const std::uint8_t> image(std::int64_t i) const noexcept {
    return images.subspan(static_cast<std::size_t>(i * image_bytes()),
                          static_cast<std::size_t>(image_bytes()));
  }
  Shape shape() const { return {height, width, channels}; }  ///< one image: [H, W, C]

  /// The first `n` samples (all of them if there are fewer). Throws Error where n < 1.
  Split first(std::int64_t n) const;
};

/// "images", bytes divided by 255, and "labels". Throws Error on a split that is empty or lacks
/// some bytes, and on a label outside its classes; `kind` says whose in messages: "training".
Samples samples_of(const Split& split, std::string_view kind = {});

struct ImageData {
  std::string name;    ///< "fashion-mnist"
  std::string origin;  ///< the folder, or how it was made
  std::vector<std::string> class_names;
  Split train;
  Split test;
  std::shared_ptr<const void> bytes;  ///< owns what the splits view

  Shape shape() const { return train.shape(); }  ///< one image: [H, W, C]
  int classes() const noexcept { return train.classes; }
};

/// Reads the four IDX files of `folder`, plain or `.gz` (a plain file wins):
/// {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte; a dot before `idx` is taken
/// too. Throws Error: a file missing or wrong, counts of images and labels that differ, labels
/// outside 0…classes-1, train and test images of different sizes.
ImageData load_images(const std::filesystem::path& folder, std::string name,
                      std::vector<std::string> class_names);

ImageData fashion_mnist(const std::filesystem::path& folder);  ///< as `load_images`
ImageData mnist(const std::filesystem::path& folder);          ///< as `load_images`

struct SyntheticOptions {
  std::uint64_t seed = 1;
  std::int64_t train = 6000;  ///< training images, at least 10, at most 1,000,000
  std::int64_t test = 1000;   ///< test images, the same limits
};

/// Drawn garments of the ten classes of Fashion-MNIST, 28×28 grey: shapes under random shift,
/// scale, slant, pattern, light and noise. Made in memory (0.1 s) in integer arithmetic, the same
/// bytes everywhere. A linear model stays below 80 % (20 epochs), one convolution of 16 channels
/// passes 90 %: for trying things out where no real data is at hand, not for comparing models.
ImageData synthetic(const SyntheticOptions& options = {});

/// The same garments in colour, 32×32 red, green and blue: cloth, pattern and background each have
/// a hue of their own, so that neither brightness nor a colour tells the class. Made in memory, the
/// same bytes everywhere; it has no files.
ImageData synthetic_color(const SyntheticOptions& options = {});

/// The set called `name` (fashion-mnist, mnist, synthetic or synthetic-color). `folder`, if given,
/// is the set's own folder and the only place looked in. Else the first of $ARENITE_DATASETS/<name>
/// and <cache folder>/<name> that holds any of its files; the synthetic sets are made in memory.
/// Never another set: throws Error with every place looked in and how to fetch it.
ImageData find(std::string_view name, const std::filesystem::path& folder = {});

/// The folder where `find` would take `name` from; where it is nowhere, the one that
/// `datasets/fetch` would fill.
std::filesystem::path default_folder(std::string_view name = "fashion-mnist");

/// The names that `find` knows.
std::vector<std::string> names();

/// Writes both splits into `folder` as the four plain IDX files. Throws Error.
void save_images(const ImageData& data, const std::filesystem::path& folder);

}  // namespace arenite::data
