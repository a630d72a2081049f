#include "src/cli/image_samples.hpp"

#include <arenite/data/array.hpp>
#include <arenite/data/idx.hpp>

#include "src/base/element.hpp"
#include "src/base/file.hpp"
#include "src/base/refuse.hpp"

#include <png.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace arenite::cli {
namespace {

constexpr std::string_view weights_name = "sample_weight";

Shape shape_of_one(const Port& input) { return Shape(input.shape.dims().subspan(1)); }

void append(Images& images, std::span<const std::byte> bytes) {
  images.bytes.insert(images.bytes.end(), bytes.begin(), bytes.end());
}

/// "28x28 in grey", "784 numbers"
std::string described(const Shape& image) {
  const bool has_pixels =
      image.rank() == 2 || (image.rank() == 3 && (image[2] == 1 || image[2] == 3));
  if (!has_pixels) return "images of " + to_string(image);
  return "images of " + std::to_string(image[0]) + " rows and " + std::to_string(image[1]) +
         " columns, " + (image.rank() == 3 && image[2] == 3 ? "in colour" : "in grey");
}

[[noreturn]] void refuse_size(const std::string& found, const Shape& image,
                              const std::string& where) {
  refuse(found, described(image) + ", as the network takes", where,
         "bring them to that size before");
}

/// How many images arrays of a shape are; 0: they are none. Of a network that takes numbers in a
/// row any shape will do that has as many.
std::int64_t images_in(const Shape& all, const Shape& image) {
  if (all.rank() == 0) return 0;
  const auto are = [&](std::span<const std::int64_t> dims) {
    const auto last = static_cast<std::size_t>(image.rank()) - 1;
    return std::ranges::equal(dims, image.dims()) ||
           (image[image.rank() - 1] == 1 && std::ranges::equal(dims, image.dims().first(last)));
  };
  const std::int64_t elements = all.elements(), wanted = image.elements();
  if (image.rank() == 1) {
    if (elements == wanted) return 1;
    return all[0] > 0 && elements == all[0] * wanted ? all[0] : 0;
  }
  if (are(all.dims())) return 1;
  return are(all.dims().subspan(1)) ? all[0] : 0;
}

/// Of a decoder, which is freed whatever happens.
class Png {
 public:
  Png(std::span<const std::uint8_t> bytes, std::string where) : where_(std::move(where)) {
    picture_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&picture_, bytes.data(), bytes.size()) == 0) wrong();
    // Else numbers of 16 bits would be taken for light, and made darker ones' bytes.
    picture_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  }
  ~Png() { png_image_free(&picture_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  void append_to(Images& images, const Shape& image) {
    const std::int64_t pixels = std::int64_t{picture_.width} * picture_.height;
    const bool by_size = image.rank() == 1;
    const std::int64_t channels = by_size && pixels > 0 ? image.elements() / pixels
                                  : image.rank() == 3   ? image[2]
                                                        : 1;
    const bool fits = by_size ? channels * pixels == image.elements()
                              : image[0] == picture_.height && image[1] == picture_.width;
    if (!fits || (channels != 1 && channels != 3)) {
      refuse_size("a picture of " + std::to_string(picture_.height) + " rows and " +
                      std::to_string(picture_.width) + " columns",
                  image, where_);
    }
    const bool has_alpha = (picture_.format & PNG_FORMAT_FLAG_ALPHA) != 0;
    picture_.format = (channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB) |
                      (has_alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
    const auto stored = static_cast<std::size_t>(channels + (has_alpha ? 1 : 0));
    std::vector<std::byte> decoded(static_cast<std::size_t>(pixels) * stored);
    if (png_image_finish_read(&picture_, nullptr, decoded.data(), 0, nullptr) == 0) wrong();
    if (has_alpha) drop_alpha(decoded, stored);
    append(images, decoded);
  }

 private:
  [[noreturn]] void wrong() const {
    refuse(std::string("what is no PNG picture: ") + picture_.message, "a whole one", where_);
  }

  /// The last of so many bytes of a pixel.
  void drop_alpha(std::vector<std::byte>& pixels, std::size_t bytes) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      if (i % bytes + 1 < bytes) {
        pixels[kept++] = pixels[i];
      } else if (pixels[i] != std::byte{255}) {
        refuse("a picture that is transparent", "one that is not", where_,
               "nobody knows what lies behind it");
      }
    }
    pixels.resize(kept);
  }

  png_image picture_{};
  std::string where_;
};

std::int64_t append_array(const std::filesystem::path& file, const Shape& image, Images& images) {
  const data::Array array = data::read_npy(file);
  if (array.type != DType::uint8 && !is_real(array.type)) {
    refuse("an array of " + std::string(to_string(array.type)),
           "bytes, or real numbers as they are", file.string());
  }
  const std::int64_t count = images_in(array.shape, image);
  if (count == 0) refuse_size("an array " + to_string(array.shape), image, file.string());
  if (images.count > 0 && images.type != array.type) return 0;
  images.type = array.type;
  append(images, array.bytes);
  return count;
}

}  // namespace

const Port& image_input(std::span<const Port> inputs) {
  const auto found = std::ranges::find_if(
      inputs, [](const Port& input) { return is_real(input.type) && input.shape.rank() > 1; });
  if (found != inputs.end()) return *found;
  refuse("a network without an input of real numbers", "one that takes images");
}

SplitSamples samples_for(std::span<const Port> inputs, const data::Split& split,
                         const std::string& kind) {
  const Samples known = data::samples_of(split, kind);
  const Column &images = known.columns[0], &labels = known.columns[1];
  SplitSamples made;
  for (const Port& input : inputs) {
    const Shape one = shape_of_one(input);
    const bool is_number = one.rank() == 0, real = is_real(input.type);
    Column column;
    if (is_number && !real) {
      column = labels;
    } else if (is_number && input.name == weights_name) {
      made.weights.assign(static_cast<std::size_t>(split.count), 1);
      column = {.data = made.weights.data(), .type = DType::float32};
    } else if (real && one.elements() == split.image_bytes()) {
      column = images;
    } else {
      refuse("input '" + input.name + "' " + std::string(to_string(input.type)) + " " +
                 to_string(input.shape),
             "real numbers, " + std::to_string(split.image_bytes()) + " of each image of " +
                 to_string(split.shape()) + "; an integer, its label; or '" +
                 std::string(weights_name) + "', what it counts");
    }
    column.input = input.name;
    column.shape = input.shape.with(0, split.count);
    made.samples.columns.push_back(column);
  }
  return made;
}

std::int64_t append_images(const std::filesystem::path& file, const Shape& image, Images& images) {
  constexpr std::int64_t most = std::int64_t{1} << 32;
  constexpr const char* kinds = "a PNG picture, an IDX file or an array of NumPy's (.npy)";
  constexpr std::string_view png{"\x89PNG\r\n\x1a\n"}, npy{"\x93NUMPY"};
  const FileBytes bytes = map_file(file, kinds, most);
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes.data()),
                              bytes.bytes.size());
  const bool takes_bytes = images.count == 0 || images.type == DType::uint8;
  std::int64_t count = 0;
  if (text.starts_with(npy)) {
    count = append_array(file, image, images);
  } else if (text.starts_with(png)) {
    Png picture(bytes.bytes, file.string());
    if (!takes_bytes) return 0;
    images.type = DType::uint8;
    picture.append_to(images, image);
    count = 1;
  } else if (file.extension() == ".gz" || text.starts_with(std::string_view("\0\0", 2))) {
    const data::IdxFile idx = data::IdxFile::open(file, 3);
    count = images_in(idx.shape(), image);
    if (count == 0) refuse_size("images " + to_string(idx.shape()), image, file.string());
    if (!takes_bytes) return 0;
    images.type = DType::uint8;
    append(images, std::as_bytes(idx.values()));
  } else {
    refuse("a file that is none of these", kinds, file.string());
  }
  images.count += count;
  return count;
}

Samples samples_of(const Images& images, const Port& input) {
  return {{{.input = input.name,
            .data = images.bytes.data(),
            .type = images.type,
            .shape = input.shape.with(0, images.count),
            .scale = images.type == DType::uint8 ? 1.0 / 255 : 1}}};
}

}  // namespace arenite::cli
