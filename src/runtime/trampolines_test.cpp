#include "src/runtime/trampolines.hpp"

#include <arenite/error.hpp>

#include "src/base/perf_map.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace arenite::runtime {
namespace {

/// Of the code for this processor; 0: there is none.
std::size_t code_size() {
#if defined(__x86_64__)
  return trampoline_x86_64(0).size();
#elif defined(__aarch64__)
  return trampoline_aarch64(0).size();
#else
  return 0;
#endif
}

class Trampolines : public ::testing::Test {
 protected:
  Trampolines() { lent_.set("ARENITE_PERF_MAP", "1"); }
  static void TearDownTestSuite() { std::filesystem::remove(perf_map().file()); }

 private:
  LentVariables lent_;
};

struct Named {
  std::uintptr_t size = 0;
  std::string name;
};

/// By address.
std::map<std::uintptr_t, Named> names() {
  std::ifstream file(perf_map().file());
  std::map<std::uintptr_t, Named> all;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::uintptr_t address = 0;
    Named named;
    line >> std::hex >> address >> named.size >> std::ws;
    std::getline(line, named.name);
    all[address] = named;
  }
  return all;
}

std::uintptr_t address(KernelFunction run) { return reinterpret_cast<std::uintptr_t>(run); }

/// "r-xp" of the mapping that holds an address.
std::string rights(std::uintptr_t where) {
  std::ifstream maps("/proc/self/maps");
  for (std::string text; std::getline(maps, text);) {
    std::istringstream line(text);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    line >> std::hex >> begin >> dash >> end >> rights;
    if (begin <= where && where < end) return rights;
  }
  return "none";
}

void add(const KernelCall& call) { call.out<float>(0)[0] = call.in<float>(0)[0] + 1; }

/// As kernels of AVX do, it wants its frame aligned.
void scale(const KernelCall& call) {
  alignas(64) volatile float local = call.in<float>(0)[0];
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&local) % 64, 0u);
  call.out<float>(0)[0] = 2 * local;
}

float result(KernelFunction run, float x) {
  float y = 0;
  std::array<void*, 1> operands{&x}, results{&y};
  run({.operands = operands.data(), .results = results.data()});
  return y;
}

TEST_F(Trampolines, DoWhatTheirKernelsDo) {
  if (code_size() == 0) GTEST_SKIP() << "no code for this processor";
  std::vector<NamedKernel> kernels{{"forward a [plain]", add},
                                   {"forward b [plain]", scale},
                                   {"backward a [plain]", add},
                                   {"forward a [plain]", add},
                                   {"forward a [plain]", scale}};
  give_frames(kernels);
  EXPECT_EQ(result(kernels[0].run, 3), 4);
  EXPECT_EQ(result(kernels[1].run, 3), 6);
  EXPECT_EQ(result(kernels[2].run, 3), 4);
  EXPECT_EQ(result(kernels[4].run, 3), 6);
  EXPECT_EQ(kernels[0].run, kernels[3].run);
  EXPECT_NE(kernels[0].run, kernels[2].run);
  EXPECT_NE(kernels[0].run, kernels[4].run);

  const auto all = names();
  for (const NamedKernel& kernel : kernels) {
    const auto found = all.find(address(kernel.run));
    ASSERT_NE(found, all.end()) << kernel.name;
    EXPECT_EQ(found->second.name, kernel.name);
    EXPECT_EQ(found->second.size, code_size());
    EXPECT_EQ(rights(address(kernel.run)), "r-xp");
  }

  std::vector<NamedKernel> again{{"forward b [plain]", scale}, {"update c [plain]", add}};
  give_frames(again);
  EXPECT_EQ(again[0].run, kernels[1].run);
  EXPECT_EQ(result(again[1].run, 1), 2);
  EXPECT_EQ(names().size(), all.size() + 1);
}

/// More than a page of them.
TEST_F(Trampolines, AreAsManyAsAreAskedFor) {
  if (code_size() == 0) GTEST_SKIP() << "no code for this processor";
  std::vector<NamedKernel> kernels;
  for (int i = 0; i < 1000; ++i) {
    kernels.push_back(
        {.name = "forward op" + std::to_string(i) + " [plain]", .run = i % 2 ? add : scale});
  }
  give_frames(kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    ASSERT_EQ(result(kernels[i].run, 5), i % 2 ? 6 : 10) << i;
}

TEST_F(Trampolines, StayAwayWhereNobodyAsks) {
  LentVariables lent;
  lent.set("ARENITE_PERF_MAP", "0");
  std::vector<NamedKernel> kernels{{"forward unasked [plain]", add}};
  give_frames(kernels);
  EXPECT_EQ(kernels[0].run, &add);
}

TEST_F(Trampolines, NameTheOpsOfPrograms) {
  if (code_size() == 0) GTEST_SKIP() << "no code for this processor";
  Session session({.workers = 1});
  plan::StateLayout state;
  testing::Draft draft("named");
  draft.builder.context.where = "layer 3";
  const auto x = draft.declare("x", graph::StorageClass::input),
             total = draft.declare("total", graph::StorageClass::buffer);
  draft.builder.add("accumulate", {total, draft.builder.add1("probe_add", {x, x})});
  auto set = testing::make_set(session, draft.finish(state));
  for (int i = 1; i <= 3; ++i) {
    *set["named"].input<float>("x") = static_cast<float>(i);
    set["named"].submit();
  }
  set["named"].wait();
  EXPECT_EQ(set.state<float>("total")[0], 12);
  std::vector<std::string> found;
  for (const auto& [at, named] : names()) {
    if (named.name.find("layer 3") != std::string::npos) found.push_back(named.name);
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"forward accumulate layer 3 [fused]",
                                             "forward probe_add layer 3 [plain]"}));
}

TEST(TrampolineCode, IsWhatAssemblersMake) {
  const std::uint64_t target = 0x1122334455667788;
  EXPECT_EQ(trampoline_x86_64(target),
            (std::vector<std::uint8_t>{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5,
                                       0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
                                       0x22, 0x11, 0xff, 0xd0, 0x5d, 0xc3}));
  EXPECT_EQ(trampoline_aarch64(target),
            (std::vector<std::uint8_t>{
                0x5f, 0x24, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xb0, 0x00,
                0x00, 0x58, 0x00, 0x02, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
                0x1f, 0x20, 0x03, 0xd5, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
}

}  // namespace
}  // namespace arenite::runtime
