#include <arenite/error.hpp>
#include <arenite/runtime/session.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "src/runtime/environment.hpp"

namespace arenite::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* measurements = "STARPU_PERF_MODEL_DIR";

/// A home of its own; no other folder is named.
struct Environment : ::testing::Test {
  Environment() {
    std::string name = (fs::temp_directory_path() / "arenite-test-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    for (const char* variable : {measurements, "XDG_CACHE_HOME", "STARPU_HOME"})
      outer.hide(variable);
    outer.set("HOME", (folder / "home").string());
    outer.set("TMPDIR", folder.string());
  }
  ~Environment() override {
    std::error_code error;
    fs::remove_all(folder, error);
  }

  std::string chosen() {
    LentVariables lent;
    prepare_environment(lent);
    return environment(measurements);
  }
  /// Not even root makes a folder below a file.
  fs::path blocked() {
    std::ofstream(folder / "file") << "x";
    return folder / "file" / "below";
  }
  std::string temporary() {
    return (folder / ("arenite-" + std::to_string(::geteuid())) / "starpu").string();
  }

  fs::path folder;
  LentVariables outer;
};

TEST_F(Environment, IsPutBack) {
  outer.set("ARENITE_TEST_A", "a");
  outer.hide("ARENITE_TEST_B");
  {
    LentVariables lent;
    lent.set("ARENITE_TEST_A", "1");
    lent.set("ARENITE_TEST_A", "2");
    lent.hide("ARENITE_TEST_A");
    lent.set("ARENITE_TEST_B", "b");
    EXPECT_EQ(std::getenv("ARENITE_TEST_A"), nullptr);
    EXPECT_STREQ(std::getenv("ARENITE_TEST_B"), "b");
  }
  EXPECT_STREQ(std::getenv("ARENITE_TEST_A"), "a");
  EXPECT_EQ(std::getenv("ARENITE_TEST_B"), nullptr);
}

TEST_F(Environment, KeepsMeasurementsWhereStarpuDoes) {
  EXPECT_EQ(chosen(), folder / "home/.starpu/sampling");
  outer.set("STARPU_HOME", (folder / "starpu").string());
  EXPECT_EQ(chosen(), folder / "starpu/.starpu/sampling");
  outer.set(measurements, (folder / "mine").string());
  EXPECT_EQ(chosen(), folder / "mine");
  EXPECT_TRUE(fs::is_directory(folder / "mine" / "bus"));
}

TEST_F(Environment, DoesWithoutAHome) {
  outer.set("HOME", blocked().string());
  EXPECT_EQ(chosen(), temporary());
  outer.hide("HOME");
  EXPECT_EQ(chosen(), temporary());
  fs::permissions(fs::path(temporary()).parent_path(), fs::perms{0777});  // no longer ours alone
  EXPECT_THROW(chosen(), Error);
}

TEST_F(Environment, RefusesAFolderThatCannotBeWritten) {
  outer.set(measurements, blocked().string());
  try {
    chosen();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("STARPU_PERF_MODEL_DIR='" + blocked().string()),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Environment, LeavesDevicesToWhoAsksForThem) {
  for (const char* name : {"HWLOC_PLUGINS_PATH", "HWLOC_COMPONENTS"}) outer.hide(name);
  {
    LentVariables lent;
    prepare_environment(lent);
    EXPECT_NE(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
    EXPECT_NE(std::getenv("HWLOC_COMPONENTS"), nullptr);
  }
  EXPECT_EQ(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
  outer.set("HWLOC_COMPONENTS", "x86");
  LentVariables lent;
  prepare_environment(lent);
  EXPECT_STREQ(std::getenv("HWLOC_COMPONENTS"), "x86");
}

// StarPU itself would end the process.
TEST_F(Environment, StartsStarpuWithoutAHome) {
  outer.set("HOME", blocked().string());
  const Session session({.workers = 1});
  EXPECT_EQ(session.workers(), 1);
  EXPECT_TRUE(fs::is_directory(temporary()));
}

}  // namespace
}  // namespace arenite::runtime
