// Small networks, one for every form that a layer's options can take: each trains on drawn images
// and its loss falls.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

namespace arenite {
namespace {

struct Form {
  const char* name;
  nn::Layer layers;  ///< from images to images; a classifier follows
  float lr = 0.005f;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

/// A convolution, so that each form also hands a gradient on.
nn::Layer after_conv(nn::Layer layer) {
  return nn::sequential(nn::conv2d({.channels = 8, .kernel = 3}), nn::relu(), std::move(layer));
}

std::vector<Form> forms() {
  return {
      {"ConvOneNumberEach",
       after_conv(nn::conv2d({.channels = 8, .kernel = 3, .stride = 2, .padding = 1}))},
      {"ConvPairs",
       after_conv(nn::conv2d(
           {.channels = 8, .kernel = {5, 3}, .stride = {2, 1}, .padding = {2, 1}, .dilation = 2}))},
      {"ConvDilatedPair",
       after_conv(nn::conv2d({.channels = 8, .kernel = 3, .dilation = {1, 3}, .bias = false}))},
      {"ConvSame", after_conv(nn::conv2d({.channels = 8, .kernel = 5, .padding = nn::same}))},
      {"ConvSameStrided",
       after_conv(nn::conv2d(
           {.channels = 8, .kernel = 3, .stride = {3, 2}, .padding = nn::same, .dilation = 2}))},
      {"MaxPoolOneNumber", after_conv(nn::max_pool2d(2))},
      {"MaxPoolOverlapping", after_conv(nn::max_pool2d({.kernel = 3, .stride = 2, .padding = 1}))},
      {"MaxPoolPairs",
       after_conv(nn::max_pool2d({.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}}))},
      {"AvgPoolOneNumber", after_conv(nn::avg_pool2d(2))},
      {"AvgPoolOverlapping", after_conv(nn::avg_pool2d({.kernel = 3, .stride = 2, .padding = 1}))},
      {"AvgPoolUncountedPadding",
       after_conv(nn::avg_pool2d(
           {.kernel = {3, 5}, .stride = {1, 2}, .padding = nn::same, .count_padding = false}))},
      {"GlobalAvgPool",
       nn::sequential(nn::conv2d({.channels = 8, .kernel = 3, .init = nn::WeightInit::he}),
                      nn::relu(),
                      nn::conv2d({.channels = 32, .kernel = 3, .init = nn::WeightInit::he}),
                      nn::relu(), nn::global_avg_pool()),
       0.1f},  // means move slowly
  };
}

class LayerForms : public ::testing::TestWithParam<Form> {};

/// Steps over one and the same batch, in grey and in colour.
TEST_P(LayerForms, Learn) {
  const data::SyntheticOptions small{.seed = 4, .train = 32, .test = 10};
  for (const data::ImageData& data : {data::synthetic(small), data::synthetic_color(small)}) {
    runtime::Session session({.workers = 1});
    train::Trainer trainer(session, nn::sequential(GetParam().layers, nn::flatten(), nn::dense(10)),
                           data.shape(),
                           {.batch = 32,
                            .optimizer = optim::sgd({.lr = GetParam().lr, .momentum = 0.9f}),
                            .lanes = 2});
    const double first = trainer.fit(data.train, {.epochs = 1}).train.loss;
    const double second = trainer.fit(data.train, {.epochs = 1}).train.loss;
    EXPECT_NEAR(first, 2.303, 0.02) << "as if guessing";
    EXPECT_LT(second, first) << "after one step";
    // Plain kernels under sanitizers would take minutes for the rest.
    if (ARENITE_PLAIN_KERNELS) continue;
    EXPECT_LT(trainer.fit(data.train, {.epochs = 30}).train.loss, first - 0.03) << "after 32";
  }
}

INSTANTIATE_TEST_SUITE_P(, LayerForms, ::testing::ValuesIn(forms()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace arenite
