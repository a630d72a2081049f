// A trainer as C has one, for tests.
#pragma once

#include <arenite/trainer.h>
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace arenite::c_api {

inline const std::string network = R"(
  $1 = InputTensor(pixels, float32, [N<=100, 784]);
  $2 = InputTensor(label, int32, [N]);
  $3 = ParameterTensor(weight, float32, [784, 10], uniform(-0.05, 0.05));
  $4 = ParameterTensor(bias, float32, [10]);
  $5 = dense($1, $3, $4);
  $6, $7, $8 = softmax_cross_entropy($5, $2, divisor=N);
  $9 = slice($7, 1, 2);
  train($6, optimizer=sgd, learning_rate=0.05, momentum=0.9);
  entry predict = $5;
  entry accuracy = $9;
  result = _;)";

inline const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.seed = 9, .train = 470, .test = 130});
  return data;
}

/// Columns of a split, and what their shapes stand in.
struct Columns {
  explicit Columns(const data::Split& split, std::vector<std::int64_t> one = {784},
                   const char* images = "pixels", const char* labels = "label")
      : pixels(std::move(one)), count{split.count} {
    pixels.insert(pixels.begin(), split.count);
    all[0] = {images,        split.images.data(),
              ARENITE_UINT8, static_cast<int>(pixels.size()),
              pixels.data(), 1.0 / 255};
    all[1] = {labels, split.labels.data(), ARENITE_UINT8, 1, count.data(), 0};
  }
  std::vector<std::int64_t> pixels;
  std::array<std::int64_t, 1> count;
  std::array<arenite_column, 2> all;
};

struct CTrainer : ::testing::Test {
  void SetUp() override {
    good(arenite_session_create(nullptr, &session, &message));
    good(arenite_trainer_options_create(&options, &message));
  }
  void TearDown() override {
    arenite_trainer_free(trainer);
    arenite_trainer_options_free(options);
    arenite_session_destroy(session);
  }

  void good(arenite_status status) {
    EXPECT_EQ(status, ARENITE_OK) << (message == nullptr ? "" : message);
    arenite_free(message);
    message = nullptr;
  }
  std::string refused(arenite_status status) {
    EXPECT_EQ(status, ARENITE_INVALID);
    const std::string text = message == nullptr ? "" : message;
    arenite_free(message);
    message = nullptr;
    return text;
  }
  void set(const char* name, const char* value) {
    good(arenite_trainer_options_set(options, name, value, &message));
  }
  void create(const std::string& script = network) {
    good(arenite_trainer_create(session, script.c_str(), options, &trainer, &message));
  }
  void begin(const Columns& samples, const Columns* validation = nullptr) {
    good(arenite_trainer_begin(trainer, samples.all.data(), 2,
                               validation ? validation->all.data() : nullptr, validation ? 2 : 0,
                               options, &message));
  }
  arenite_event advance(std::int64_t steps = 0, double seconds = 0) {
    arenite_event event{};
    good(arenite_trainer_advance(trainer, steps, seconds, &event, &message));
    return event;
  }
  void fit(const Columns& samples) {
    begin(samples);
    while (advance().kind != ARENITE_ENDED) continue;
  }
  std::string sha(arenite_trainer* of) {
    char* text = nullptr;
    good(arenite_trainer_weights_sha256(of, &text, &message));
    std::string copy = text == nullptr ? "" : text;
    arenite_free(text);
    return copy;
  }
  static std::string file(const char* name) {
    return (std::filesystem::temp_directory_path() /
            (std::string("c_trainer.") + std::to_string(::getpid()) + name))
        .string();
  }

  const Columns train{images().train}, test{images().test};
  arenite_session* session = nullptr;
  arenite_trainer_options* options = nullptr;
  arenite_trainer* trainer = nullptr;
  char* message = nullptr;
};

}  // namespace arenite::c_api
