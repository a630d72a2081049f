#include "src/c_api/options.hpp"

#include <arenite/arenite.h>
#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <string>
#include <utility>

namespace arenite::c_api {
namespace {

TEST(COptions, AreTakenByTheirNames) {
  ModelOptions options;
  for (const auto& [name, member] : {std::pair{"shards", &ModelOptions::shards},
                                     {"lanes", &ModelOptions::lanes},
                                     {"at-once", &ModelOptions::shards_at_once}}) {
    for (const int number : {1, 64}) {
      set_option(options, name, std::to_string(number));
      EXPECT_EQ(options.*member, number) << name;
    }
    set_option(options, name, "auto");
    EXPECT_EQ(options.*member, 0) << name;
  }
  set_option(options, "device", "cpu");
  EXPECT_EQ(options.device, "cpu");
  set_option(options, "cudnn", "off");
  EXPECT_FALSE(options.cudnn);
  set_option(options, "compute", "bfloat16");
  EXPECT_EQ(options.compute, runtime::Compute::bfloat16);
}

TEST(COptions, ThatThereAreNotChangeNothing) {
  ModelOptions options;
  const auto refused = [&](const char* name, const std::string& value) {
    return testing::error_of([&] { set_option(options, name, value); });
  };
  EXPECT_EQ(refused("compute", "float16"),
            "compute 'float16'; expected float32, bfloat16 or tfloat32");
  for (const char* value : {"", "0", "65", "-1", "4 ", "all", "99999999999"}) {
    EXPECT_EQ(refused("shards", value),
              "shards '" + std::string(value) + "'; expected a whole number of 1 to 64, or auto");
  }
  EXPECT_EQ(refused("cudnn", "no"), "cudnn 'no'; expected on or off");
  EXPECT_EQ(refused("at_once", "2"),
            "the option 'at_once'; expected one of at-once, compute, cudnn, device, lanes, seed, "
            "shards, size, sizes-kept (hint: did you mean 'at-once'?)");
  EXPECT_EQ(options.shards, 0);
  EXPECT_EQ(options.shards_at_once, 0);
  EXPECT_TRUE(options.cudnn);
  EXPECT_EQ(options.compute, runtime::Compute::float32);
}

TEST(COptions, ReportWhatIsMissing) {
  arenite_options* options = nullptr;
  ASSERT_EQ(arenite_options_create(&options, nullptr), ARENITE_OK);
  char* message = nullptr;
  EXPECT_EQ(arenite_options_set(options, "lanes", nullptr, &message), ARENITE_INVALID);
  EXPECT_NE(std::string(message).find("null for the value"), std::string::npos);
  arenite_free(message);
  EXPECT_EQ(arenite_options_set(options, "lanes", "0", nullptr), ARENITE_INVALID);
  EXPECT_EQ(arenite_options_set(options, "lanes", "2", nullptr), ARENITE_OK);
  arenite_options_free(options);
  arenite_options_free(nullptr);
}

}  // namespace
}  // namespace arenite::c_api
