// A process that trains grows no further: anonymous memory, as the system counts it.
//
// Networks whose steps are long are left out here; ctest's label slow has them.
#include <arenite/arenite.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/networks.hpp"
#include "tests/passing_layer.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

namespace arenite {
namespace {

constexpr std::int64_t batch = 2, epoch_steps = 1000;
constexpr data::SyntheticOptions thousand_batches{
    .seed = 3, .train = batch * epoch_steps, .test = 10};
constexpr long mebibyte = 1 << 20;

/// Bytes of the process's anonymous memory; −1 where the system does not say. Takes none itself.
long anonymous_bytes() {
  std::array<char, 4096> text{};
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  const char* line = size > 0 ? std::strstr(text.data(), "\nAnonymous:") : nullptr;
  if (!line) return -1;
  line += std::strcspn(line, "0123456789");
  long kibibytes = 0;
  std::from_chars(line, text.data() + size, kibibytes);
  return kibibytes * 1024;
}

/// Anonymous memory after 6,000 steps less that after 1,000, with two workers.
long growth(const nn::Layer& layers, const data::ImageData& data) {
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, layers, data.shape(), {.batch = batch, .lanes = 2});
  trainer.fit(data.train, {.epochs = 1});
  const long early = anonymous_bytes();
  trainer.fit(data.train, {.epochs = 5});
  const long late = anonymous_bytes();
  EXPECT_EQ(trainer.steps(), 6 * epoch_steps);
  return late - early;
}

struct AnonymousMemory : ::testing::TestWithParam<std::string> {};

TEST_P(AnonymousMemory, StaysFromStep1000ToStep6000) {
  if (anonymous_bytes() < 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  const data::ImageData data = testing::drawn_images(GetParam(), thousand_batches);
  if (testing::has_long_steps(GetParam(), data.shape()))
    GTEST_SKIP() << "takes minutes: run it with ctest -L slow";
  const long bytes = growth(nn::model(GetParam()).layers, data);
  EXPECT_LE(bytes, mebibyte);
  RecordProperty("bytes", std::to_string(bytes));
}

INSTANTIATE_TEST_SUITE_P(Networks, AnonymousMemory, ::testing::ValuesIn(testing::networks()),
                         [](const auto& one) { return testing::case_name(one.param); });

void leak() {
  auto* volatile bytes = static_cast<char*>(std::malloc(512));
  if (bytes) std::memset(bytes, 1, 512);
}

TEST(LeakingOperator, Grows) {
  if (anonymous_bytes() < 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  const nn::Layer layers =
      nn::sequential(nn::flatten(), testing::passing_layer<leak>("leaking"), nn::dense(10));
  // 5,000 steps, two lanes, 512 bytes: five mebibytes.
  EXPECT_GT(growth(layers, data::synthetic(thousand_batches)), 4 * mebibyte);
}

}  // namespace
}  // namespace arenite
