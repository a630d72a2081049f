#include <arenite/error.hpp>
#include <arenite/runtime/block.hpp>
#include <arenite/runtime/devices.hpp>
#include <arenite/runtime/kernel.hpp>
#include <arenite/runtime/session.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace arenite::runtime {
namespace {

TEST(Block, MakesItsOneAllocationOnFirstUse) {
  const long before = counters().blocks;
  Block block("step", 3 << 20);
  EXPECT_FALSE(block.allocated());
  EXPECT_EQ(counters().blocks, before);
  EXPECT_EQ(block.pinned(), "not yet");
  std::byte* first = block.data();
  EXPECT_EQ(first, block.data());
  EXPECT_EQ(counters().blocks, before + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
  for (std::int64_t i = 0; i < block.bytes(); i += 4096) EXPECT_EQ(first[i], std::byte{0});
  EXPECT_TRUE(block.pinned() == "locked" || block.pinned().rfind("no (", 0) == 0) << block.pinned();
}

/// Whether the mapping that holds `data` asks the kernel for huge pages. Whether it has some to
/// give depends on how fragmented the machine's memory is, which no test can know.
bool asks_for_huge_pages(const std::byte* data) {
  std::ifstream maps("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2)
      inside = begin <= address && address < end;
    if (inside && line.rfind("VmFlags:", 0) == 0) return (line + " ").find(" hg ") != line.npos;
  }
  return false;
}

TEST(Block, OfMegabytesAsksForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent huge pages";
  Block block("step", 5 << 20);
  std::byte* data = block.data();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % (2 << 20), 0u);
  EXPECT_TRUE(asks_for_huge_pages(data));
  Block small("small", 100 << 10);
  EXPECT_FALSE(asks_for_huge_pages(small.data()));
}

TEST(Block, OfNoBytesAllocatesNothing) {
  const long before = counters().blocks;
  Block block("empty", 0);
  EXPECT_EQ(block.data(), nullptr);
  EXPECT_EQ(counters().blocks, before);
  EXPECT_THROW(Block("negative", -1), Error);
}

TEST(Block, KeepsItsBytesWhenMoved) {
  Block block("a", 4096);
  std::byte* data = block.data();
  data[17] = std::byte{42};
  Block moved(std::move(block));
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.data()[17], std::byte{42});
}

TEST(Block, SaysWhenTheSystemRefuses) {
  Block block("vast", std::int64_t{1} << 60);
  try {
    block.data();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("memory for block 'vast'"), std::string::npos)
        << error.what();
  }
}

TEST(StatusWord, KeepsTheLowestOpWhateverTheSchedule) {
  StatusWord word;
  std::vector<std::thread> threads;
  for (std::uint32_t op : {9u, 3u, 7u, 5u})
    threads.emplace_back([&word, op] { word.report(op, op * 10); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(StatusWord::op_of(word.load()), 3u);
  EXPECT_EQ(StatusWord::code_of(word.load()), 30u);
  word.clear();
  EXPECT_EQ(word.load(), StatusWord::ok);
}

TEST(KernelTable, RefusesDoublesAndUnknownNames) {
  KernelTable table;
  const auto prepare = [](const graph::OpView&) { return PreparedKernel{}; };
  table.add("relu", {.name = "plain", .prepare = prepare});
  EXPECT_THROW(table.add("relu", {.name = "plain", .prepare = prepare}), Error);
  EXPECT_THROW(table.add("relu", {.name = "unprepared"}), Error);
  EXPECT_THROW(table.at("relu", "fast", DeviceKind::cpu), Error);
  EXPECT_TRUE(table.find("unknown").empty());
}

TEST(Devices, AreListedOrExplained) {
  const CudaSupport support = cuda_support();
  EXPECT_NE(support.devices.empty(), support.reason.empty());
}

}  // namespace
}  // namespace arenite::runtime
