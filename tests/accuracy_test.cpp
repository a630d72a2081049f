// The networks with the command's defaults on the real Fashion-MNIST: what ten epochs must reach.
#include <gtest/gtest.h>
#include <arenite/arenite.hpp>

#include <optional>

namespace arenite {
namespace {

/// None where the data set is not on this machine.
const data::ImageData* fashion_mnist() {
  static const std::optional<data::ImageData> data = []() -> std::optional<data::ImageData> {
    try {
      return data::find("fashion-mnist");
    } catch (const Error&) {
      return std::nullopt;
    }
  }();
  return data ? &*data : nullptr;
}

double accuracy_after_ten_epochs(const char* model) {
  const data::ImageData& data = *fashion_mnist();
  runtime::Session session;
  train::Trainer trainer(session, nn::model(model).layers, data.shape(), {});
  return trainer.fit(data.train, {.epochs = 10, .validation = &data.test}).validation->accuracy;
}

struct Accuracy : ::testing::Test {
  void SetUp() override {
    if (!fashion_mnist())
      GTEST_SKIP() << "Fashion-MNIST is not here: set ARENITE_DATASETS or run datasets/fetch";
  }
};

TEST_F(Accuracy, OfCnn1IsAtLeast87Percent) { EXPECT_GE(accuracy_after_ten_epochs("cnn1"), 0.870); }
TEST_F(Accuracy, OfMlpIsAtLeast87AndAHalfPercent) {
  EXPECT_GE(accuracy_after_ten_epochs("mlp"), 0.875);
}

TEST_F(Accuracy, OfLenet5IsAtLeast89AndAHalfPercent) {
  EXPECT_GE(accuracy_after_ten_epochs("lenet5"), 0.895);
}
TEST_F(Accuracy, OfCnn2IsAtLeast91Percent) { EXPECT_GE(accuracy_after_ten_epochs("cnn2"), 0.910); }

}  // namespace
}  // namespace arenite
