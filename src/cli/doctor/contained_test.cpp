#include "src/cli/doctor/contained.hpp"
#include "src/cli/doctor/surroundings.hpp"

#include <arenite/error.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
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
  const auto throws = [](const auto& what) { return [what]() -> Finding { throw what; }; };
  const Finding refused = contained(throws(std::bad_alloc()), 10s);
  EXPECT_EQ(failure(refused), "the system refused memory; expected memory for the check");
  EXPECT_EQ(refused.problems[0].mend, more_memory());
  const Finding other = contained(throws(std::out_of_range("beyond")), 10s);
  EXPECT_EQ(failure(other), "beyond; expected a check that comes to its end");
  EXPECT_NE(other.problems[0].mend.find("report it"), std::string::npos);
}

/// A limit of this process while it lives.
class ScopedLimit {
 public:
  ScopedLimit(__rlimit_resource_t resource, rlim_t most) : resource_(resource) {
    ::getrlimit(resource, &before_);
    const rlimit now{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(resource, &now), 0);
  }
  ~ScopedLimit() { ::setrlimit(resource_, &before_); }
  ScopedLimit(const ScopedLimit&) = delete;
  ScopedLimit& operator=(const ScopedLimit&) = delete;

 private:
  __rlimit_resource_t resource_;
  rlimit before_{};
};

TEST(Contained, SaysWhatToTryAfterACrash) {
  const auto check = []() -> Finding { ::_exit(3); };
  const auto mend = [&] { return contained(check, 10s).problems.at(0).mend; };
  const auto says = [&](const char* text) { return mend().find(text) != std::string::npos; };
  EXPECT_TRUE(mend().ends_with("report it, with what `arenite doctor --json` prints")) << mend();
  EXPECT_FALSE(says("ulimit -n")) << mend();
  {
    const ScopedLimit files(RLIMIT_NOFILE, 64);
    const ScopedLimit stack(RLIMIT_STACK, 4 << 20);
    EXPECT_TRUE(says("raise `ulimit -n` (now 64)")) << mend();
    EXPECT_TRUE(says("raise `ulimit -s` (now 4096)")) << mend();
  }
  ::setenv("STARPU_WATCHDOG_CRASH", "1", 1);
  EXPECT_TRUE(says("unset STARPU_WATCHDOG_CRASH; else")) << mend();
  ::unsetenv("STARPU_WATCHDOG_CRASH");
}

TEST(Contained, AskForNoSmallerBatch) {
  const auto refused = [](const char* expected) {
    return Failure({.found = "no", .expected = expected, .where = {}, .hint = "a smaller batch"});
  };
  EXPECT_EQ(for_a_check(refused("memory for block 'state'")).hint, more_memory());
  EXPECT_EQ(for_a_check(refused("something else")).hint, "a smaller batch");
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

/// A check that starts a process, and hangs as that does.
class HangingCheck {
 public:
  HangingCheck() { EXPECT_EQ(::pipe(ends_), 0); }
  ~HangingCheck() { ::close(ends_[0]); }
  HangingCheck(const HangingCheck&) = delete;
  HangingCheck& operator=(const HangingCheck&) = delete;

  Finding operator()() const {
    if (::fork() == 0) ::close(ends_[0]);
    for (;;) std::this_thread::sleep_for(1s);
  }
  /// To be asked once: all that it started has ended.
  bool has_ended() const {
    ::close(ends_[1]);
    char byte;
    return ::read(ends_[0], &byte, 1) == 0;  // nobody holds the other end any more
  }

 private:
  int ends_[2];
};

TEST(Contained, EndsWhatAHangingCheckHasStarted) {
  const HangingCheck check;
  EXPECT_EQ(failure(contained(std::cref(check), 300ms)), "no answer within 0.3 s");
  EXPECT_TRUE(check.has_ended());
}

TEST(Contained, EndsWhatACheckInACheckHasStarted) {
  const HangingCheck inner;
  const Finding finding = contained([&] { return contained(std::cref(inner), 300ms); }, 10s);
  EXPECT_EQ(failure(finding), "no answer within 0.3 s");
  EXPECT_TRUE(inner.has_ended());
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
