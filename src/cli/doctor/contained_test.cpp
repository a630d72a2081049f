#include "src/cli/doctor/contained.hpp"

#include <arenite/error.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace arenite::cli::doctor {
namespace {

using namespace std::chrono_literals;

/// The only problem of a check that did not come to its end.
std::string failure(const Finding& finding) {
  EXPECT_EQ(finding.mark(), Mark::fails);
  EXPECT_EQ(finding.problems.size(), 1u);
  return finding.problems.empty() ? "" : finding.problems.front().what;
}

TEST(Contained, GivesWhatTheCheckFound) {
  const auto check = [] {
    Finding finding;
    finding.says = "two lines\nand a byte \xff";
    finding.details = {"one", "two"};
    finding.note("what", "how");
    finding.fails("more", "");
    finding.facts = {{"number", 3}, {"none", nullptr}};
    return finding;
  };
  const Finding finding = contained(check, 10s);
  EXPECT_EQ(finding.says, "two lines\nand a byte \uFFFD");
  EXPECT_EQ(finding.details, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(finding.problems.size(), 2u);
  EXPECT_EQ(finding.problems[0].mark, Mark::note);
  EXPECT_EQ(finding.problems[0].mend, "how");
  EXPECT_EQ(finding.mark(), Mark::fails);
  EXPECT_EQ(finding.facts.dump(), R"({"number":3,"none":null})");
}

TEST(Contained, GivesMoreThanAPipeHolds) {
  const std::string line(300'000, 'x');
  const Finding finding = contained(
      [&] {
        std::cerr << line;
        return Finding{.says = line, .details = {}, .problems = {}};
      },
      20s);
  EXPECT_EQ(finding.says, line);
  EXPECT_EQ(finding.mark(), Mark::ok);
}

TEST(Contained, TellsWhatWasThrown) {
  const auto check = []() -> Finding {
    fail({.found = "a folder", .expected = "a file", .where = "'x'", .hint = "name another"});
  };
  const Finding finding = contained(check, 10s);
  EXPECT_EQ(failure(finding), "'x': a folder; expected a file");
  EXPECT_EQ(finding.problems[0].mend, "name another");
  EXPECT_NE(failure(contained([]() -> Finding { throw std::bad_alloc(); }, 10s)).find("bad_alloc"),
            std::string::npos);
}

TEST(Contained, OutlivesACrash) {
  const auto check = []() -> Finding {
    std::cerr << "first\n\nlast words\n" << std::flush;
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's own ending has another name
    std::raise(SIGSEGV);
    return {};
  };
  const Finding finding = contained(check, 10s);
  EXPECT_EQ(failure(finding), "it was ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(finding.details, (std::vector<std::string>{"first", "last words"}));
}

TEST(Contained, OutlivesAnEndOfTheProcess) {
  EXPECT_EQ(failure(contained([]() -> Finding { ::_exit(3); }, 10s)),
            "it ended the process with status 3");
  EXPECT_EQ(failure(contained([]() -> Finding { ::_exit(0); }, 10s)),
            "it ended the process with status 0");
}

TEST(Contained, WaitsNoLongerThanItSays) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hang = []() -> Finding {
    std::signal(SIGTERM, SIG_IGN);
    for (;;) std::this_thread::sleep_for(1s);
  };
  EXPECT_EQ(failure(contained(hang, 300ms)), "no answer within 0.3 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(Contained, EndsWhatAHangingCheckHasStarted) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto check = [&]() -> Finding {
    if (::fork() == 0) ::close(ends[0]);
    for (;;) std::this_thread::sleep_for(1s);
  };
  EXPECT_EQ(failure(contained(check, 300ms)), "no answer within 0.3 s");
  ::close(ends[1]);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // nobody holds the other end any more
  ::close(ends[0]);
}

TEST(Contained, LeavesTheProcessAsItWas) {
  const int before = ::dup(0);
  ::close(before);
  contained([] { return Finding(); }, 10s);
  contained([]() -> Finding { ::abort(); }, 10s);
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(before, after);  // no descriptor is left open
}

}  // namespace
}  // namespace arenite::cli::doctor
