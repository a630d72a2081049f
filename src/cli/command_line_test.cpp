// Programs without subcommands, as the benchmarks are; tests/cli_*_test.py have those of `arenite`.
#include "src/cli/command_line.hpp"

#include <gtest/gtest.h>

#include "src/cli/checks.hpp"

#include <optional>
#include <string>
#include <vector>

namespace arenite::cli {
namespace {

struct Program : ::testing::Test {
  Program() {
    add_each<std::string>(app, "TABLE", tables, any_text, "a path", "tables");
    add_each<std::int64_t>(
        app, "--random", sizes,
        [](const std::string& text) -> std::optional<std::int64_t> {
          return whole_number(text, 3, 9);
        },
        whole_number_text(3, 9), "a table of N buffers")
        ->type_name("N");
  }
  Asked read(std::vector<const char*> words) {
    words.insert(words.begin(), "planners");
    return read_command_line(app, static_cast<int>(words.size()), words.data());
  }

  Command app{"planners", "Plans tables"};
  std::vector<std::string> tables;
  std::vector<std::int64_t> sizes;
};

TEST_F(Program, ReadsItsOwnOptions) {
  const Asked asked = read({"--random", "5", "a.csv", "--random=7", "b.csv"});
  EXPECT_EQ(asked.command, &app) << asked.text;
  EXPECT_EQ(tables, (std::vector<std::string>{"a.csv", "b.csv"}));
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(read({}).command, &app);
}

TEST_F(Program, SaysItsOwnName) {
  const Asked help = read({"--help"});
  EXPECT_EQ(help.status, exit_ok);
  EXPECT_EQ(help.text,
            "Plans tables.\n\nusage: planners [TABLE]… [OPTION]…\n\nArguments\n"
            "  TABLE                     tables\n\nOptions\n"
            "  -h, --help                print this\n"
            "  --random N                a table of N buffers\n");
  const Asked unknown = read({"--randm", "5"});
  EXPECT_EQ(unknown.status, exit_bad_input);
  EXPECT_EQ(unknown.text,
            "unknown argument '--randm' (did you mean '--random'?); expected options of planners "
            "(hint: see planners --help)");
  EXPECT_EQ(read({"--random", "2"}).text,
            "--random: '2'; expected a whole number of 3 to 9 (hint: see planners --help)");
}

}  // namespace
}  // namespace arenite::cli
