// What only simulated GPUs can be asked: devices that fail, that are too small, that count their
// bytes. A build with CUDA has none (tests/CMakeLists.txt).
#include <arenite/arenite.hpp>
#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "tests/gpu_programs.hpp"

#include <set>
#include <sstream>
#include <string>

namespace arenite::testing {
namespace {

using OnSimulatedGpus = OnGpus;

/// gpu-check holds what CUDA was asked for against this number.
TEST_F(OnSimulatedGpus, NamesTheBytesOnDevicesExactly) {
  runtime::Session session({.workers = 1, .device = "cuda"});
  train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
  trainer.prepare(&small_set().train, &small_set().test);
  std::ostringstream table;
  table << trainer.plan();
  const std::string bytes = "   " + std::to_string(SimulatedDevice::all_in_use()) + " bytes\n";
  EXPECT_NE(table.str().find("  on devices"), std::string::npos) << table.str();
  EXPECT_NE(table.str().find(bytes), std::string::npos) << table.str() << bytes;
}

TEST_F(OnSimulatedGpus, LeavesDataThatTakesTooMuchToTheHost) {
  const data::ImageData data = data::synthetic({.seed = 3, .train = 333, .test = 77});
  const auto explained = [&](std::int64_t memory, std::optional<bool> resident) {
    runtime::Session session({.workers = 1, .device = "cuda", .device_memory = memory});
    train::Trainer trainer(session, nn::model("cnn1").layers, data.shape(),
                           {.batch = 32, .resident_data = resident});
    trainer.prepare(&data.train, nullptr);
    std::ostringstream out;
    trainer.explain(out);
    // What is said of the passes is of the program that runs, and so is the plan.
    const std::string text = out.str(), chosen = "dynamic_slice";
    const std::size_t tasks = text.find("program 'train'");
    EXPECT_EQ(text.substr(0, tasks).find(chosen) == std::string::npos,
              text.substr(tasks).find(chosen) == std::string::npos);
    EXPECT_EQ(text.find(chosen) != std::string::npos,
              std::ranges::any_of(trainer.step_plan().placements, [](const auto& place) {
                return place.name.starts_with("train/images@cuda");
              }));
    return text;
  };
  const auto bytes = static_cast<std::int64_t>(data.train.images.size() + data.train.labels.size());
  const std::string chosen = "dynamic_slice";  // the host only says which samples
  EXPECT_NE(explained(4 * bytes, {}).find(chosen), std::string::npos);
  EXPECT_EQ(explained(4 * bytes - 1, {}).find(chosen), std::string::npos);
  EXPECT_NE(explained(4 * bytes - 1, true).find(chosen), std::string::npos);
}

TEST_F(OnSimulatedGpus, PredictAsProcessorsDo) {
  const Samples samples = data::samples_of(small_set().test);
  const auto predicted = [&](const std::string& device, std::optional<bool> resident) {
    runtime::Session session({.workers = 1, .device = device});
    train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(),
                           {.batch = 32, .lanes = 2, .resident_data = resident});
    trainer.fit(small_set().train, {.epochs = 1});
    return trainer.predict(samples);
  };
  const train::Predictions expected = predicted("cpu", {});
  for (const auto& [device, resident] :
       {std::pair("cuda", std::optional(true)), {"cuda", false}, {"cuda+cpu", {}}}) {
    const train::Predictions found = predicted(device, resident);
    ASSERT_EQ(found.shape, expected.shape);
    for (std::size_t i = 0; i < found.values<float>().size(); ++i)
      ASSERT_NEAR(found.values<float>()[i], expected.values<float>()[i], 1e-3) << device << i;
  }
}

TEST_F(OnSimulatedGpus, RefusesWhatDoesNotFit) {
  // One block alone is too large for the first, and their sum for the second.
  for (const auto& [memory, part] :
       {std::pair{100'000, "bytes; expected at most the capacity of 100,000"},
        std::pair{250'000, "in cuda:0/device; expected at most 250000, what they may take of"}}) {
    runtime::Session session({.workers = 1, .device = "cuda", .device_memory = memory});
    EXPECT_ERROR(part, train::Trainer trainer(session, nn::model("cnn1").layers,
                                              small_set().shape(), {.batch = 32});
                 trainer.prepare(&small_set().train, nullptr));
    EXPECT_EQ(SimulatedDevice::all_in_use(), 0);
  }
}

// The limit is on all programs' memory together.
TEST_F(OnSimulatedGpus, CountsWhatOtherProgramsHave) {
  std::int64_t one = 0;
  const auto trainer_of = [](runtime::Session& session) {
    auto trainer = std::make_unique<train::Trainer>(
        session, nn::model("cnn1").layers, small_set().shape(), train::TrainerOptions{.batch = 32});
    trainer->prepare(&small_set().train, nullptr);
    return trainer;
  };
  {
    runtime::Session session({.workers = 1, .device = "cuda"});
    const auto trainer = trainer_of(session);
    one = SimulatedDevice::all_in_use();
  }
  runtime::Session session({.workers = 1, .device = "cuda", .device_memory = 2 * one - 1});
  const auto first = trainer_of(session);
  const std::string beside = ", beside " + std::to_string(one) + " bytes of others";
  EXPECT_ERROR(beside, trainer_of(session));
  EXPECT_EQ(SimulatedDevice::all_in_use(), one);
}

/// What a trainer has after its first sweep moves into programs for the next set without two of
/// them being there at once; where those do not fit, it goes on with what it had.
TEST_F(OnSimulatedGpus, BuildsForANewSetInTheMemoryOfOne) {
  struct Bytes {
    std::int64_t training = 0, both = 0;
  } bytes;
  const auto train = [&](std::int64_t memory, auto then) {
    runtime::Session session({.workers = 1, .device = "cuda", .device_memory = memory});
    train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(),
                           {.batch = 32, .init = {.seed = 5, .range = {}}, .resident_data = true});
    trainer.fit(small_set().train, {});
    then(trainer);
    return trainer.weights_sha256();
  };
  const std::string expected = train(0, [&](train::Trainer& trainer) {
    bytes.training = SimulatedDevice::all_in_use();
    trainer.evaluate(small_set().test);
    bytes.both = SimulatedDevice::all_in_use();
    trainer.fit(small_set().train, {});
  });
  EXPECT_LT(bytes.training, bytes.both);
  EXPECT_LT(bytes.both, 2 * bytes.training);

  const auto go_on = [](train::Trainer& trainer) {
    EXPECT_EQ(trainer.evaluate(small_set().test).samples, small_set().test.count);
    trainer.fit(small_set().train, {});
  };
  EXPECT_EQ(train(bytes.both, go_on), expected);
  const auto refused = [](train::Trainer& trainer) {
    const std::string before = trainer.weights_sha256();
    EXPECT_THROW(trainer.evaluate(small_set().test), Error);
    EXPECT_EQ(trainer.weights_sha256(), before);
    trainer.fit(small_set().train, {});
  };
  EXPECT_EQ(train(bytes.both - 1, refused), expected);
}

/// Bytes that are let go of may become others' in the same place; those on devices are for what
/// comes next.
TEST_F(OnSimulatedGpus, LetGoOfData) {
  const data::ImageData a = data::synthetic({.seed = 3, .train = 165, .test = 77}),
                        b = data::synthetic({.seed = 4, .train = 165, .test = 77});
  const auto samples_in = [&](std::vector<std::uint8_t>& images, std::vector<std::uint8_t>& labels,
                              const data::Split& from) {
    images.assign(from.images.begin(), from.images.end());
    labels.assign(from.labels.begin(), from.labels.end());
    Samples samples = data::samples_of(from);
    for (Column& column : samples.columns)
      column.data = column.input == "images" ? images.data() : labels.data();
    return samples;
  };
  const auto trained = [&](const std::string& device, bool one_place) {
    runtime::Session session({.workers = 1, .device = device});
    train::Trainer trainer(session, nn::model("mlp").layers, a.shape(),
                           {.batch = 32, .lanes = 2, .resident_data = true});
    std::vector<std::uint8_t> images[2], labels[2];
    std::vector<std::int64_t> bytes;
    for (int round = 0; round < 3; ++round) {
      const int place = one_place ? 0 : round % 2;
      const Samples samples =
          samples_in(images[place], labels[place], (round % 2 == 0 ? a : b).train);
      trainer.fit(samples, {.epochs = 1});
      trainer.evaluate(samples);
      if (one_place) trainer.release(samples);
      bytes.push_back(SimulatedDevice::all_in_use());
    }
    EXPECT_TRUE(!one_place || bytes[2] == bytes[0]) << bytes[2] << " " << bytes[0];
    return trainer.weights_sha256();
  };
  EXPECT_EQ(trained("cuda", true), trained("cuda", false));
  EXPECT_EQ(trained("cpu", true), trained("cpu", false));
}

/// The run ends and says why, wherever it was; what is built anew works.
TEST_F(OnSimulatedGpus, EndsWhenADeviceFails) {
  for (const long deeds : {1L, 2L, 5L, 6L, 17L}) {
    SCOPED_TRACE(deeds);
    runtime::Session session({.workers = 1, .device = "cuda"});
    train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
    trainer.prepare(&small_set().train, nullptr);
    SimulatedDevice::deeds_left() = deeds;
    const auto why = [&] {
      try {
        trainer.fit(small_set().train, {.epochs = 3});
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    ::testing::internal::CaptureStderr();
    EXPECT_NE(why().find("simulated GPU 0: out of order"), std::string::npos);
    // Before StarPU, which would end the process on a real GPU's.
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("simulated GPU 0: out of order (program 'train', step "), std::string::npos)
        << told;
    SimulatedDevice::deeds_left() = -1;
    EXPECT_NE(why().find("a program set built anew"), std::string::npos);
  }
  EXPECT_EQ(train_once("cnn1", {.device = "cuda"}).report.train.samples, small_set().train.count);
}

/// A kernel's fault is an error of building, and says whose: not of the first step.
TEST_F(OnSimulatedGpus, TriesTasksOutWhileItBuilds) {
  if (ARENITE_CHECKED) GTEST_SKIP() << "a checked build records nothing";
  runtime::Session session({.workers = 1, .device = "cuda"});
  train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
  std::set<std::string> places;
  for (const long deeds : {1L, 9L}) {
    SimulatedDevice::deeds_left() = deeds;
    std::string why = "no error";
    try {
      trainer.prepare(&small_set().train, nullptr);
    } catch (const Failure& failure) {
      why = failure.what();
      places.insert(failure.text().where);
    }
    SimulatedDevice::deeds_left() = -1;
    EXPECT_NE(why.find("simulated GPU 0: out of order"), std::string::npos) << why;
    EXPECT_NE(why.find("program 'train', "), std::string::npos) << why;
  }
  EXPECT_EQ(places.size(), 2U) << "of two tasks";
  EXPECT_EQ(trainer.fit(small_set().train, {}).train.samples, small_set().train.count);
}

TEST_F(OnSimulatedGpus, NamesDevicesThatAreNotThere) {
  const auto why = [](const char* device) {
    try {
      const runtime::Session session({.workers = 1, .device = device});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(why("cuda:2"),
            "device 'cuda:2'; expected one of cpu, cuda:0 (simulated GPU 0), cuda:1 (simulated GPU "
            "1)");
  EXPECT_EQ(why("gpu"),
            "device 'gpu'; expected cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu");
  EXPECT_EQ(why("cuda:0+"),
            "device ''; expected cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu");
  EXPECT_EQ(why("cuda+cuda:0"),
            "device 'cuda:0' twice in 'cuda+cuda:0'; expected each device once");
  EXPECT_EQ(why("auto"), "no error");
}

}  // namespace
}  // namespace arenite::testing
