#include <arenite/data/dataset.hpp>
#include <arenite/data/idx.hpp>

#include "src/base/installed.hpp"
#include "src/base/refuse.hpp"
#include "src/base/shell_word.hpp"
#include "src/data/garments.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

namespace arenite::data {
namespace {

namespace fs = std::filesystem;

struct FileName {
  const char* stem;
  const char* kind;
};

constexpr FileName train_images{"train-images", "idx3-ubyte"};
constexpr FileName train_labels{"train-labels", "idx1-ubyte"};
constexpr FileName test_images{"t10k-images", "idx3-ubyte"};
constexpr FileName test_labels{"t10k-labels", "idx1-ubyte"};
constexpr std::array all_files{train_images, train_labels, test_images, test_labels};

fs::path plain_path(const fs::path& folder, FileName file) {
  return folder / (std::string(file.stem) + "-" + file.kind);
}

/// The first of the file's names that is not known to be absent: what opens it says more of a link
/// that leads nowhere, or of a folder that may not be searched.
std::optional<fs::path> locate(const fs::path& folder, FileName file) {
  for (const char* ending : {"", ".gz"}) {
    for (const char* joint : {"-", "."}) {
      fs::path path = folder / (std::string(file.stem) + joint + file.kind + ending);
      std::error_code error;
      if (fs::symlink_status(path, error).type() != fs::file_type::not_found) return path;
    }
  }
  return std::nullopt;
}

bool holds_any(const fs::path& folder) {
  return std::ranges::any_of(all_files, [&](FileName f) { return locate(folder, f).has_value(); });
}

/// Into this folder, wherever that is then done; into the cache where it is empty.
std::string fetch_hint(const std::string& name, fs::path folder) {
  std::error_code error;
  if (!folder.empty()) folder = fs::absolute(folder, error);
  if (name == "synthetic") {
    return "draw it, in Arenite's source: datasets/make-synthetic " + shell_word(folder.string()) +
           "; or name no folder";
  }
  const std::string to = folder.empty() ? "" : "--to " + shell_word(folder.string()) + " ";
  return by_script("fetch it", "datasets/fetch", to + name);
}

IdxFile open_file(const fs::path& folder, FileName file, int rank, const std::string& dataset) {
  if (const auto path = locate(folder, file)) return IdxFile::open(*path, rank);
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  const bool can_be_filled = fs::is_directory(status) || !fs::exists(status);
  refuse(fs::is_directory(status)
             ? "no file " + plain_path({}, file).string() + "[.gz] in this folder"
         : fs::exists(status) ? "not a folder"
                              : "no such folder",
         "the four IDX files of " + dataset, folder.string(),
         can_be_filled ? fetch_hint(dataset, folder) : "name the folder they are in");
}

Split make_split(const IdxFile& images, const IdxFile& labels, int classes) {
  const Shape& shape = images.shape();
  if (shape[0] != labels.shape()[0]) {
    refuse(
        std::to_string(labels.shape()[0]) + " labels for " + std::to_string(shape[0]) + " images",
        "one label an image", labels.name() + ", byte 4");
  }
  check_labels(labels.values(), classes, labels.name());
  return {.images = images.values(),
          .labels = labels.values(),
          .count = shape[0],
          .height = shape[1],
          .width = shape[2],
          .channels = 1,
          .classes = classes};
}

std::vector<fs::path> places(std::string_view name) {
  std::vector<fs::path> list;
  if (const char* root = std::getenv("ARENITE_DATASETS"); root && *root)
    list.push_back(fs::path(root) / name);
  list.push_back(cache_folder() / name);
  return list;
}

std::vector<std::string> digit_names() {
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

}  // namespace

Split Split::first(std::int64_t n) const {
  if (n < 1) refuse("a limit of " + std::to_string(n) + " samples", "at least 1");
  Split part = *this;
  part.count = std::min(n, count);
  part.images = images.first(static_cast<std::size_t>(part.count * image_bytes()));
  part.labels = labels.first(static_cast<std::size_t>(part.count));
  return part;
}

ImageData load_images(const fs::path& folder, std::string name,
                      std::vector<std::string> class_names) {
  const int classes = static_cast<int>(class_names.size());
  // Labels first: they are small, and a wrong folder shows at once.
  auto files = std::make_shared<std::array<IdxFile, 4>>(std::array{
      open_file(folder, train_labels, 1, name), open_file(folder, test_labels, 1, name),
      open_file(folder, train_images, 3, name), open_file(folder, test_images, 3, name)});
  const auto& [labels, held_out_labels, images, held_out_images] = *files;
  ImageData data{.name = std::move(name),
                 .origin = folder.string(),
                 .class_names = std::move(class_names),
                 .train = make_split(images, labels, classes),
                 .test = make_split(held_out_images, held_out_labels, classes),
                 .bytes = files};
  if (data.test.shape() != data.train.shape()) {
    refuse("test images of " + to_string(data.test.shape()),
           "the training images' " + to_string(data.train.shape()),
           held_out_images.name() + ", byte 8");
  }
  return data;
}

ImageData fashion_mnist(const fs::path& folder) {
  return load_images(folder, "fashion-mnist", garment_names());
}
ImageData mnist(const fs::path& folder) { return load_images(folder, "mnist", digit_names()); }

std::vector<std::string> names() {
  return {"fashion-mnist", "mnist", "synthetic", "synthetic-color"};
}

fs::path default_folder(std::string_view name) {
  const std::vector<fs::path> candidates = places(name);
  const auto found = std::ranges::find_if(candidates, holds_any);
  return found != candidates.end() ? *found : candidates.back();
}

ImageData find(std::string_view name, const fs::path& folder) {
  const std::vector<std::string> known = names();
  if (std::ranges::find(known, name) == known.end()) {
    refuse("unknown data set '" + std::string(name) + "'",
           "fashion-mnist, mnist, synthetic or synthetic-color");
  }
  if (folder.empty() && name == "synthetic") return synthetic();
  if (name == "synthetic-color") {
    if (folder.empty()) return synthetic_color();
    refuse("a folder for synthetic-color: " + folder.string(),
           "none: the set is drawn in memory and has no files", {},
           "name the data set that the folder holds");
  }
  const auto load = [&](const fs::path& from) {
    return load_images(from, std::string(name), name == "mnist" ? digit_names() : garment_names());
  };
  if (!folder.empty()) return load(folder);
  const fs::path found = default_folder(name);
  if (!holds_any(found)) {
    std::string list;
    for (const fs::path& place : places(name)) list += (list.empty() ? "" : ", ") + place.string();
    refuse("data set " + std::string(name) + " is in none of the places looked in: " + list,
           "its four IDX files, plain or .gz", {},
           fetch_hint(std::string(name), {}) + "; or set ARENITE_DATASETS to the folder above " +
               std::string(name) + "/");
  }
  return load(found);
}

void save_images(const ImageData& data, const fs::path& folder) {
  const auto save = [&](const Split& split, FileName images, FileName labels) {
    if (split.channels != 1) {
      refuse("images of " + std::to_string(split.channels) + " channels", "grey images");
    }
    write_idx(plain_path(folder, images), {split.count, split.height, split.width}, split.images);
    write_idx(plain_path(folder, labels), {split.count}, split.labels);
  };
  save(data.train, train_images, train_labels);
  save(data.test, test_images, test_labels);
}

}  // namespace arenite::data
