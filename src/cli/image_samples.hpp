// Images of files and data sets as a network's inputs.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/model.hpp>
#include <arenite/samples.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace arenite::cli {

/// Samples of a split, which count alike.
struct SplitSamples {
  Samples samples;
  std::vector<float> weights;  ///< ones, where a network takes some; `samples` point to them
};

/// Images of a split, bytes divided by 255, for inputs of real numbers with as many elements, its
/// labels for inputs of one integer a sample, and ones for weights, an input `sample_weight` of one
/// real number, as Python's trainers name it. Throws Error on inputs that are none of these, and as
/// data::samples_of.
SplitSamples samples_for(std::span<const Port> inputs, const data::Split& split,
                         const std::string& kind);

/// The input that is given images: the first one of real numbers. Throws Error where there is none.
const Port& image_input(std::span<const Port> inputs);

/// Rows of a column of images, whose bytes are here.
struct Images {
  DType type = DType::uint8;     ///< bytes, which are divided by 255; or float32, or float64
  std::vector<std::byte> bytes;  ///< of all of them
  std::int64_t count = 0;
};

/// Appends the images of a file, a PNG picture, an IDX file (plain or .gz) or an array of NumPy's
/// (.npy), where they are of the type that is there, or there are none yet. Returns how many; 0:
/// they are of another type. An `image` is the shape of one sample; pictures are grey or of three
/// colours as it has one channel or three. Throws Error on whatever is wrong with the file, and on
/// images of another size.
std::int64_t append_images(const std::filesystem::path& file, const Shape& image, Images& images);

Samples samples_of(const Images& images, const Port& input);

}  // namespace arenite::cli
