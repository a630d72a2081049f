#include <arenite/data/dataset.hpp>
#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include "src/data/test_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

namespace arenite::data {
namespace {

using DatasetTest = FolderTest;

std::string find_error(std::string_view name, const std::filesystem::path& folder = {}) {
  try {
    find(name, folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A tiny set: n training images of h×w and one test image.
void put_set(const std::filesystem::path& folder, std::uint32_t n, std::uint32_t h = 2,
             std::uint32_t w = 3, std::uint8_t label = 1) {
  write_idx(folder / "train-images-idx3-ubyte", {n, h, w}, Bytes(n * h * w, 7));
  write_idx(folder / "train-labels-idx1-ubyte", {n}, Bytes(n, label));
  write_idx(folder / "t10k-images-idx3-ubyte", {1, h, w}, Bytes(h * w, 9));
  write_idx(folder / "t10k-labels-idx1-ubyte", {1}, Bytes(1, label));
}

TEST_F(DatasetTest, LoadsAFolder) {
  put_set(folder_, 5);
  const ImageData data = fashion_mnist(folder_);
  EXPECT_EQ(data.shape(), Shape({2, 3, 1}));
  EXPECT_EQ(data.train.count, 5);
  EXPECT_EQ(data.test.count, 1);
  EXPECT_EQ(data.classes(), 10);
  EXPECT_EQ(data.class_names[9], "ankle boot");
  EXPECT_EQ(data.train.image(4).size(), 6u);
  EXPECT_EQ(data.train.image(4)[5], 7);
  EXPECT_EQ(data.origin, folder_.string());
}

TEST_F(DatasetTest, CopiesAndMovesKeepTheBytes) {
  put_set(folder_, 5);
  ImageData copy;
  {
    const ImageData data = mnist(folder_);
    copy = data;
  }
  const ImageData moved = std::move(copy);
  EXPECT_EQ(moved.train.image(0)[0], 7);
  EXPECT_EQ(moved.name, "mnist");
}

TEST_F(DatasetTest, TakesGzipAndDottedNames) {
  put_set(folder_, 5);
  const auto plain = folder_ / "train-images-idx3-ubyte";
  put("train-images.idx3-ubyte.gz", gzip(get(plain)));
  std::filesystem::remove(plain);
  EXPECT_EQ(mnist(folder_).train.count, 5);
}

TEST_F(DatasetTest, FirstLimitsASplit) {
  put_set(folder_, 5);
  const ImageData data = mnist(folder_);
  EXPECT_EQ(data.train.first(3).count, 3);
  EXPECT_EQ(data.train.first(3).images.size(), 18u);
  EXPECT_EQ(data.train.first(3).labels.size(), 3u);
  EXPECT_EQ(data.train.first(99).count, 5);
  EXPECT_THROW(data.train.first(0), Error);
}

TEST_F(DatasetTest, SetsThatDoNotFitTogetherAreRefused) {
  put_set(folder_, 5);
  write_idx(folder_ / "train-labels-idx1-ubyte", {4}, Bytes(4, 1));
  EXPECT_TRUE(says(find_error("mnist", folder_), "4 labels for 5 images"));
  put_set(folder_, 5, 2, 3, 10);
  EXPECT_TRUE(says(find_error("mnist", folder_), "label 10"));
  put_set(folder_, 5);
  write_idx(folder_ / "t10k-images-idx3-ubyte", {1, 3, 3}, Bytes(9, 1));
  EXPECT_TRUE(says(find_error("mnist", folder_), "test images of [3, 3, 1]"));
  std::filesystem::remove(folder_ / "t10k-images-idx3-ubyte");
  const std::string text = find_error("mnist", folder_);
  EXPECT_TRUE(says(text, "t10k-images-idx3-ubyte") &&
              says(text, "datasets/fetch --to " + folder_.string() + " mnist"))
      << text;
}

TEST_F(DatasetTest, LooksInOrderAndNeverTakesAnotherSet) {
  const ScopedVariable root("ARENITE_DATASETS", (folder_ / "sets").string());
  const std::string nowhere = find_error("fashion-mnist");
  EXPECT_TRUE(says(nowhere, (folder_ / "sets" / "fashion-mnist").string())) << nowhere;
  EXPECT_TRUE(says(nowhere, (folder_ / "cache" / "fashion-mnist").string())) << nowhere;
  EXPECT_TRUE(says(nowhere, "datasets/fetch fashion-mnist")) << nowhere;
  EXPECT_EQ(default_folder(), folder_ / "cache" / "fashion-mnist");

  put_set(folder_ / "sets" / "mnist", 3);
  EXPECT_TRUE(says(find_error("fashion-mnist"), "none of the places"));
  put_set(folder_ / "cache" / "fashion-mnist", 1);
  EXPECT_EQ(find("fashion-mnist").train.count, 1);
  put_set(folder_ / "sets" / "fashion-mnist", 2);
  EXPECT_EQ(find("fashion-mnist").train.count, 2);
  EXPECT_EQ(default_folder(), folder_ / "sets" / "fashion-mnist");
  put_set(folder_ / "own", 4);
  EXPECT_EQ(find("fashion-mnist", folder_ / "own").train.count, 4);
  // A folder that was asked for by name does not give way to one that was not.
  const std::string wrong = find_error("fashion-mnist", folder_ / "wrong");
  EXPECT_TRUE(says(wrong, (folder_ / "wrong").string()) && !says(wrong, "sets/fashion-mnist,"))
      << wrong;
  EXPECT_TRUE(says(find_error("cifar"), "unknown data set 'cifar'"));
}

TEST_F(DatasetTest, AHalfFilledFolderIsNotSkipped) {
  const ScopedVariable root("ARENITE_DATASETS", (folder_ / "sets").string());
  put_set(folder_ / "sets" / "mnist", 3);
  put_set(folder_ / "cache" / "mnist", 3);
  std::filesystem::remove(folder_ / "sets" / "mnist" / "train-images-idx3-ubyte");
  EXPECT_TRUE(says(find_error("mnist"), "no file train-images-idx3-ubyte[.gz]"));
}

TEST_F(DatasetTest, WhatCannotBeOpenedIsNotSkipped) {
  const ScopedVariable root("ARENITE_DATASETS", (folder_ / "sets").string());
  put_set(folder_ / "sets" / "mnist", 3);
  put_set(folder_ / "cache" / "mnist", 3);
  const auto images = folder_ / "sets" / "mnist" / "train-images-idx3-ubyte";
  std::filesystem::remove(images);
  std::filesystem::create_symlink("nowhere", images);
  EXPECT_TRUE(says(find_error("mnist"),
                   images.string() + ": cannot open it: No such file or directory (a link to "
                                     "nowhere); expected a readable file"));
  if (::geteuid() == 0) return;  // root may search every folder
  std::filesystem::permissions(folder_ / "sets" / "mnist", std::filesystem::perms::none);
  EXPECT_TRUE(says(find_error("mnist"), "cannot open it: Permission denied"));
  std::filesystem::permissions(folder_ / "sets" / "mnist", std::filesystem::perms::owner_all);
}

std::uint64_t fnv1a(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

TEST_F(DatasetTest, SyntheticIsTheSameEverywhere) {
  const ImageData data = synthetic();
  EXPECT_EQ(data.train.count, 6000);
  EXPECT_EQ(data.test.count, 1000);
  EXPECT_EQ(fnv1a(data.train.images), 0xda3aabeaa7b668aeu);
  EXPECT_EQ(fnv1a(data.train.labels), 0x652a52efb0e37e75u);
  EXPECT_EQ(fnv1a(data.test.images), 0x54c2e9c1a3113a9bu);
}

TEST_F(DatasetTest, SyntheticDependsOnTheSeedAndNotOnTheOtherSplit) {
  const ImageData a = synthetic({.seed = 1, .train = 100, .test = 10});
  const ImageData b = synthetic({.seed = 1, .train = 100, .test = 20});
  const ImageData c = synthetic({.seed = 2, .train = 100, .test = 10});
  EXPECT_EQ(fnv1a(a.train.images), fnv1a(b.train.images));
  EXPECT_NE(fnv1a(a.train.images), fnv1a(c.train.images));
  EXPECT_THROW(synthetic({.train = 9}), Error);
  EXPECT_THROW(synthetic({.test = 1'000'001}), Error);
}

TEST_F(DatasetTest, SyntheticClassesAreBalancedAndDrawn) {
  const ImageData data = synthetic();
  std::array<int, 10> seen{};
  std::array<double, 10> light{};
  for (std::int64_t i = 0; i < data.train.count; ++i) {
    const std::uint8_t label = data.train.labels[static_cast<std::size_t>(i)];
    ASSERT_LT(label, 10);
    ++seen[label];
    const auto image = data.train.image(i);
    light[label] += std::accumulate(image.begin(), image.end(), 0.0) / 784;
    EXPECT_GT(*std::max_element(image.begin(), image.end()), 40) << "sample " << i << " is dark";
    EXPECT_LT(std::count_if(image.begin(), image.end(), [](std::uint8_t p) { return p > 40; }), 600)
        << "sample " << i;
  }
  for (int n : seen) EXPECT_EQ(n, 600);
  EXPECT_GT(light[0], light[5]) << "a T-shirt covers more than a sandal";
  // No class sits at fixed places of the order: the first hundred hold all ten.
  EXPECT_EQ(
      std::set<std::uint8_t>(data.train.labels.begin(), data.train.labels.begin() + 100).size(),
      10u);
}

TEST_F(DatasetTest, SyntheticColorIsTheSameEverywhere) {
  const ImageData data = find("synthetic-color");
  EXPECT_EQ(data.name, "synthetic-color");
  EXPECT_EQ(data.train.count, 6000);
  EXPECT_EQ(data.test.count, 1000);
  EXPECT_EQ(data.shape(), Shape({32, 32, 3}));
  EXPECT_EQ(data.class_names, synthetic({.train = 10, .test = 10}).class_names);
  EXPECT_EQ(fnv1a(data.train.images), 0x1b8913b4fd521e90u);
  EXPECT_EQ(fnv1a(data.train.labels), 0x73a6ddfa85f7b3e9u);
  EXPECT_EQ(fnv1a(data.test.images), 0x609d8d4bc56262f3u);
}

TEST_F(DatasetTest, SyntheticColorDependsOnTheSeedAndNotOnTheOtherSplit) {
  const ImageData a = synthetic_color({.seed = 1, .train = 100, .test = 10});
  const ImageData b = synthetic_color({.seed = 1, .train = 100, .test = 20});
  const ImageData c = synthetic_color({.seed = 2, .train = 100, .test = 10});
  EXPECT_EQ(fnv1a(a.train.images), fnv1a(b.train.images));
  EXPECT_NE(fnv1a(a.train.images), fnv1a(c.train.images));
  EXPECT_THROW(synthetic_color({.train = 9}), Error);
}

TEST_F(DatasetTest, SyntheticColorIsBalancedDrawnAndColoured) {
  const ImageData data = synthetic_color({.train = 1000, .test = 10});
  std::array<int, 10> seen{};
  std::array<int, 6> strongest{};  // hues by the order of their channels
  for (std::int64_t i = 0; i < data.train.count; ++i) {
    ++seen.at(data.train.labels[static_cast<std::size_t>(i)]);
    const auto image = data.train.image(i);
    // The garment is what differs from its column's topmost pixels: those are background, under the
    // same light.
    int drawn = 0;
    std::array<long, 3> light{};
    for (std::size_t at = 0; at < image.size(); at += 3) {
      int difference = 0;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const int here = image[at + channel], above = image[at % 96 + channel];
        difference = std::max(difference, std::abs(here - above));
        light[channel] += here;
      }
      if (difference > 40) ++drawn;
    }
    EXPECT_GT(drawn, 15) << "sample " << i << " shows nothing";
    EXPECT_LT(drawn, 850) << "sample " << i << " shows no background";
    const std::size_t first = light[0] > light[1] ? 0 : 1,
                      top = light[2] > light[first] ? 2 : first;
    const bool rising = light[(top + 1) % 3] > light[(top + 2) % 3];
    ++strongest.at(2 * top + (rising ? 1 : 0));
  }
  for (int n : seen) EXPECT_EQ(n, 100);
  for (int n : strongest) EXPECT_GT(n, 100) << "a sixth of the wheel is missing";
}

TEST_F(DatasetTest, SyntheticColorHasNoFiles) {
  put_set(folder_, 5);
  EXPECT_EQ(find_error("synthetic-color", folder_),
            "a folder for synthetic-color: " + folder_.string() +
                "; expected none: the set is drawn in memory and has no files (hint: name the data "
                "set that the folder holds)");
  EXPECT_THROW(save_images(synthetic_color({.train = 10, .test = 10}), folder_ / "out"), Error);
  for (const std::string& name : names())
    EXPECT_FALSE(says(find_error(name), "unknown data set")) << name;
}

TEST_F(DatasetTest, SyntheticSurvivesItsFiles) {
  const ImageData made = synthetic({.seed = 3, .train = 50, .test = 20});
  save_images(made, folder_ / "out");
  const ImageData read = find("synthetic", folder_ / "out");
  EXPECT_TRUE(
      std::equal(made.train.images.begin(), made.train.images.end(), read.train.images.begin()));
  EXPECT_TRUE(
      std::equal(made.test.labels.begin(), made.test.labels.end(), read.test.labels.begin()));
}

TEST_F(DatasetTest, RealFashionMnistIsWhole) {
  const char* root = std::getenv("ARENITE_DATASETS");
  if (!root || !std::filesystem::exists(std::filesystem::path(root) / "fashion-mnist")) {
    GTEST_SKIP() << "real data: set ARENITE_DATASETS to the folder above fashion-mnist/";
  }
  const ImageData data = find("fashion-mnist");
  ASSERT_EQ(data.train.count, 60'000);
  ASSERT_EQ(data.test.count, 10'000);
  EXPECT_EQ(data.shape(), Shape({28, 28, 1}));
  for (std::uint8_t c = 0; c < 10; ++c) {
    EXPECT_EQ(std::count(data.train.labels.begin(), data.train.labels.end(), c), 6000);
    EXPECT_EQ(std::count(data.test.labels.begin(), data.test.labels.end(), c), 1000);
  }
  // The mean that its papers give: 0.2860 of full white.
  const double sum = std::accumulate(data.train.images.begin(), data.train.images.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(data.train.images.size()) / 255, 0.2860, 0.0001);
}

}  // namespace
}  // namespace arenite::data
