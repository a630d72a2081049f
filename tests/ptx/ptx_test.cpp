// Kernels' PTX, run on the host: what it computes, and which mistakes of kernels it finds.
#include <gtest/gtest.h>

#include "tests/ptx/machine.hpp"
#include "tests/ptx/operations.hpp"
#include "tests/ptx/parser.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace ptx {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A kernel of two parameters: an address, in %rd0, and a number, in %n. %r0 is the thread's index
/// in its block, %r1 the block's, %rd1 the address of the word of a thread's own in the grid.
std::string kernel(const std::string& body) {
  return R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 kernel_param_0, .param .u32 kernel_param_1)
.maxntid 256, 1, 1
{
  .reg .pred %p<8>;
  .reg .b16 %rs<8>;
  .reg .b32 %r<16>;
  .reg .b32 %n;
  .reg .f32 %f<8>;
  .reg .f64 %fd<4>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 shared[1024];
  ld.param.u64 %rd7, [kernel_param_0];
  cvta.to.global.u64 %rd0, %rd7;
  ld.param.u32 %n, [kernel_param_1];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.s32 %r3, %r1, %r2, %r0;
  mul.wide.s32 %rd2, %r3, 4;
  add.s64 %rd1, %rd0, %rd2;
)" + body +
         "\n  ret;\n}\n";
}

struct How {
  std::uint32_t blocks = 1, threads = 32, number = 0;
  bool counting = false, early = false;
};

struct Outcome {
  std::vector<std::uint32_t> words;
  Counts counts;
};

/// Runs a kernel on words, and on nothing else: twice, with blocks from either end.
Outcome run(const std::string& body, const std::vector<std::uint32_t>& words, const How& how = {}) {
  const Module module = parse(kernel(body));
  const Entry& entry = module.at("kernel");
  Machine machine(how.counting);
  const auto run_once = [&] {
    std::vector<std::uint32_t> mine = words;
    std::vector<std::byte> parameters(entry.parameter_bytes);
    const auto address = reinterpret_cast<std::uint64_t>(mine.data());
    std::memcpy(parameters.data() + entry.parameters[0].offset, &address, sizeof(address));
    std::memcpy(parameters.data() + entry.parameters[1].offset, &how.number, sizeof(how.number));
    const Range range{address, address + 4 * mine.size()};
    machine.run({&entry, how.blocks, how.threads, parameters.data(), {&range, 1}, how.early});
    return mine;
  };
  const std::vector<std::uint32_t> first = run_once();
  EXPECT_EQ(run_once(), first);
  return {first, machine.counts().at("kernel")};
}

std::string fault(const std::string& body, std::size_t words, const How& how = {}) {
  try {
    run(body, std::vector<std::uint32_t>(words), how);
  } catch (const Fault& found) {
    return found.what();
  }
  return "none";
}

std::string refusal(const std::string& body) {
  try {
    parse(kernel(body));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

/// Threads leave a loop each at its own time, and meet behind it.
TEST(Ptx, RunsThreadsThatPartWays) {
  const char* const steps_to_one = R"(
  ld.global.u32 %r4, [%rd1];
  mov.u32 %r5, 0;
loop:
  setp.eq.s32 %p1, %r4, 1;
  @%p1 bra done;
  and.b32 %r6, %r4, 1;
  setp.eq.b32 %p2, %r6, 1;
  shr.u32 %r7, %r4, 1;
  mad.lo.s32 %r8, %r4, 3, 1;
  selp.b32 %r4, %r8, %r7, %p2;
  add.s32 %r5, %r5, 1;
  bra.uni loop;
done:
  st.global.u32 [%rd1], %r5;)";
  EXPECT_EQ(run(steps_to_one, {27, 1, 2, 3, 7, 97}, {.blocks = 2, .threads = 3}).words,
            (std::vector<std::uint32_t>{111, 0, 1, 7, 16, 118}));
}

/// Each takes what the thread at the other end of the block has put there.
const std::string reversed = R"(
  ld.global.u32 %r4, [%rd1];
  mov.u32 %r5, shared;
  shl.b32 %r6, %r0, 2;
  add.s32 %r7, %r5, %r6;
  st.shared.u32 [%r7], %r4;
  BARRIER
  sub.s32 %r8, %r2, %r0;
  shl.b32 %r9, %r8, 2;
  add.s32 %r10, %r5, %r9;
  ld.shared.u32 %r11, [%r10+-4];
  st.global.u32 [%rd1], %r11;)";

std::string with_barrier(const std::string& barrier) {
  std::string body = reversed;
  return body.replace(body.find("BARRIER"), 7, barrier);
}

TEST(Ptx, HandsOnInSharedMemoryBehindABarrier) {
  std::vector<std::uint32_t> words(256), expected(256);
  for (std::uint32_t i = 0; i < 256; ++i) {
    words[i] = i;
    expected[i] = i / 64 * 64 + 63 - i % 64;
  }
  EXPECT_EQ(run(with_barrier("bar.sync 0;"), words, {.blocks = 4, .threads = 64}).words, expected);
}

TEST(Ptx, FindsThreadsThatTouchTheSameAtOnce) {
  EXPECT_PRED2(has, fault(with_barrier(""), 64, {.threads = 64}), "of block 0: shared memory at ");
  EXPECT_PRED2(has, fault("st.global.u32 [%rd0], %r0;", 1), "of block 0 touches at the same time");
  EXPECT_PRED2(has, fault("st.global.u32 [%rd0], %r1;", 1, {.blocks = 2, .threads = 1}),
               "global memory at ");
  EXPECT_PRED2(has, fault("ld.global.u32 %r4, [%rd0]; st.global.u32 [%rd1], %r4;", 32),
               "touches at the same time");
  // Bytes side by side are no race, and the same byte is one.
  const std::string bytes =
      "cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd0, %rd3; mov.u16 %rs0, 7; "
      "st.global.u8 [%rd4], %rs0;";
  EXPECT_EQ(run("mov.u32 %r4, %r0;" + bytes, {0, 0}, {.threads = 8}).words,
            (std::vector<std::uint32_t>{0x07070707, 0x07070707}));
  EXPECT_PRED2(has, fault("shr.u32 %r4, %r0, 1;" + bytes, 2, {.threads = 8}),
               "touches at the same time");
}

TEST(Ptx, OrdersWhatABlockDoesByItsBarriers) {
  const std::string handed_on = R"(
  setp.eq.s32 %p1, %r0, 40;
  @%p1 st.global.u32 [%rd0], %n;
  bar.sync 0;
  ld.global.u32 %r4, [%rd0];
  bar.sync 0;
  st.global.u32 [%rd1], %r4;)";
  EXPECT_EQ(run(handed_on, std::vector<std::uint32_t>(64), {.threads = 64, .number = 5}).words,
            std::vector<std::uint32_t>(64, 5));
  EXPECT_PRED2(has, fault(handed_on, 128, {.blocks = 2, .threads = 64}), "global memory at ");
}

TEST(Ptx, FindsAccessesBeyondMemory) {
  EXPECT_PRED2(has, fault("st.global.u32 [%rd1], %r0;", 31),
               "which are not in the device's memory");
  EXPECT_PRED2(has, fault("ld.global.u32 %r4, [%rd0+-4];", 1), "which are not in the device's");
  EXPECT_PRED2(has, fault("ld.global.v2.u32 {%r4, %r5}, [%rd0+4];", 4), "are not aligned to");
  EXPECT_PRED2(has, fault("st.shared.u32 [shared+1024], %r0;", 1),
               "bytes 1024 to 1028 of 1024 of shared memory");
  EXPECT_PRED2(has, fault("ld.param.u64 %rd3, [kernel_param_0+8];", 1), "of 12 of parameters");
  EXPECT_PRED2(has, fault("ret;", 1, {.threads = 257}), "blocks of 257 threads");
}

TEST(Ptx, FindsBarriersThatNotAllComeTo) {
  EXPECT_PRED2(
      has, fault("setp.lt.s32 %p1, %r0, 40; @%p1 bra on; ret; on: bar.sync 0;", 1, {.threads = 64}),
      "a barrier that some threads of the block left before");
  EXPECT_PRED2(has,
               fault("setp.lt.s32 %p1, %r0, 7; @%p1 bra on; bar.sync 0; ret; on: bar.sync 0;", 1),
               "threads of the block at different barriers");
}

TEST(Ptx, AsksAllThreadsOfABlock) {
  const std::string any =
      "setp.eq.u32 %p1, %r3, %n; bar.red.or.pred %p2, 0, %p1; "
      "selp.u32 %r4, 1, 0, %p2; st.global.u32 [%rd1], %r4;";
  std::vector<std::uint32_t> expected(144);
  std::fill(expected.begin() + 48, expected.begin() + 96, 1);
  EXPECT_EQ(
      run(any, std::vector<std::uint32_t>(144), {.blocks = 3, .threads = 48, .number = 90}).words,
      expected);
}

TEST(Ptx, FindsMemoryThatIsTouchedTooEarly) {
  const std::string wait = "griddepcontrol.wait;", store = " st.global.u32 [%rd1], %r0; ";
  EXPECT_PRED2(has, fault(store + wait, 32, {.early = true}),
               "a grid before may not have written yet");
  EXPECT_EQ(fault(store + wait, 32), "none");
  EXPECT_EQ(fault(wait + "griddepcontrol.launch_dependents;" + store, 32, {.early = true}), "none");
  EXPECT_PRED2(has, fault("setp.eq.s32 %p1, %r0, 9; @!%p1 " + wait + store, 32, {.early = true}),
               "thread 9 of");
}

TEST(Ptx, ComparesAndSwapsOneThreadAfterTheOther) {
  const std::string count = R"(
  ld.volatile.global.u64 %rd3, [%rd0];
again:
  add.s64 %rd4, %rd3, 1;
  atom.global.cas.b64 %rd5, [%rd0], %rd3, %rd4;
  setp.ne.s64 %p1, %rd5, %rd3;
  mov.u64 %rd3, %rd5;
  @%p1 bra again;)";
  EXPECT_EQ(run(count, {0, 0}, {.blocks = 3, .threads = 40}).words[0], 120);
}

TEST(Ptx, CountsSectorsAndTurnsOfBanks) {
  const auto counts = [](std::uint32_t stride) {
    return run("mul.lo.s32 %r4, %r0, %n; shl.b32 %r5, %r4, 2; mov.u32 %r6, shared; "
               "add.s32 %r7, %r6, %r5; ld.shared.u32 %r8, [%r7]; cvt.s64.s32 %rd3, %r5; "
               "add.s64 %rd4, %rd0, %rd3; ld.global.u32 %r9, [%rd4];",
               std::vector<std::uint32_t>(264), {.number = stride, .counting = true})
        .counts;
  };
  // Twice each: the test runs them so. Memory may begin within a sector.
  EXPECT_EQ(counts(0).wavefronts, 2U);
  EXPECT_EQ(counts(1).wavefronts, 2U);
  EXPECT_EQ(counts(8).wavefronts, 16U);
  EXPECT_EQ(counts(0).sectors, 2U);
  EXPECT_LE(counts(1).sectors, 2U * 5);
  EXPECT_EQ(counts(8).sectors, 2U * 32);
  EXPECT_EQ(counts(8).shared_turns, 2U);
  EXPECT_EQ(counts(1).grids, 2U);
}

/// What an instruction gives of registers' values, in all lanes of which every second is active.
template <class D, class... S>
D computed(const std::string& name, S... values) {
  const Operation* const operation = find_operation(name);
  if (operation == nullptr) throw std::runtime_error(name);
  EXPECT_EQ(operation->sources, sizeof...(S));
  constexpr std::size_t slot = 256;
  alignas(64) std::byte file[6 * slot]{};
  Warp warp;
  warp.file = file;
  warp.active = 0x55555555;
  Instruction one;
  one.to = 5 * slot;
  std::size_t i = 0;
  const auto put = [&]<class T>(T value) {
    one.from[i] = static_cast<Register>(i * slot);
    if constexpr (std::is_same_v<T, bool>) {
      const Mask mask = value ? all_lanes : 0;
      std::memcpy(file + one.from[i], &mask, sizeof(mask));
    } else {
      std::fill_n(warp.lanes<T>(one.from[i]), lanes, value);
    }
    ++i;
  };
  (put(values), ...);
  operation->function(warp, one);
  if constexpr (std::is_same_v<D, bool>) {
    EXPECT_EQ(warp.predicate(one.to) & ~warp.active, 0U);
    return warp.predicate(one.to) == warp.active;
  } else {
    EXPECT_EQ(warp.lanes<D>(one.to)[1], D{}) << "of a lane that is not active";
    return warp.lanes<D>(one.to)[30];
  }
}

TEST(Ptx, Computes) {
  using u32 = std::uint32_t;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(computed<std::int32_t>("mul.hi.s32", -3, 1 << 30), -1);
  EXPECT_EQ(computed<std::int64_t>("mul.wide.s32", -3, 1 << 30), -3LL * (1 << 30));
  EXPECT_EQ(computed<std::int32_t>("shr.s32", -8, u32{40}), -1);
  EXPECT_EQ(computed<u32>("shl.b32", u32{8}, u32{32}), 0U);
  EXPECT_EQ(computed<std::int32_t>("div.s32", std::numeric_limits<int>::min(), -1),
            std::numeric_limits<int>::min());
  EXPECT_EQ(computed<u32>("bfi.b32", u32{0xff}, u32{0}, u32{4}, u32{6}), 0x3f0U);
  EXPECT_EQ(computed<std::uint64_t>("pack.b64", u32{1}, u32{2}), 0x200000001U);
  EXPECT_EQ(computed<u32>("high.b64", std::uint64_t{0x200000001}), 2U);
  EXPECT_EQ(computed<std::int64_t>("cvt.s64.s32", -5), -5);
  EXPECT_EQ(computed<float>("cvt.sat.f32.f32", nan), 0.0f);
  EXPECT_EQ(computed<float>("cvt.sat.f32.f32", 1.5f), 1.0f);
  EXPECT_EQ(computed<float>("fma.rn.f32", 1.0f + 0x1p-12f, 1.0f - 0x1p-12f, -1.0f), -0x1p-24f);
  EXPECT_EQ(computed<float>("fma.rm.f32", 1.0f, 0x1p-30f, 1.0f), 1.0f);
  EXPECT_EQ(computed<float>("fma.rm.f32", 1.0f, -0x1p-30f, 1.0f), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(computed<float>("ex2.approx.ftz.f32", 3.0f), 8.0f);
  EXPECT_EQ(computed<float>("ex2.approx.ftz.f32", -127.0f), 0.0f);
  EXPECT_EQ(computed<float>("max.f32", nan, 1.0f), 1.0f);
  EXPECT_FALSE(computed<bool>("setp.ne.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.neu.f32", nan, 1.0f));
  EXPECT_FALSE(computed<bool>("setp.le.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.leu.f32", nan, 1.0f));
  EXPECT_TRUE(computed<bool>("setp.lt.s32", -1, 1));
  EXPECT_FALSE(computed<bool>("setp.lt.u32", u32{0} - 1, u32{1}));
  EXPECT_EQ(computed<float>("selp.f32", 1.0f, 2.0f, false), 2.0f);
  EXPECT_TRUE(computed<bool>("xor.pred", true, false));
}

TEST(Ptx, TakesConstantsOfAllTypes) {
  const std::string some =
      "mov.pred %p1, 1; mov.pred %p2, 0; xor.pred %p3, %p1, %p2; "
      "selp.b16 %rs0, -2, 1, %p3; cvt.s32.s16 %r4, %rs0; "
      "mov.f32 %f0, 0fC0000000; mov.b32 %r5, %f0; mov.f64 %fd0, 0dC000000000000000; "
      "mov.b64 {%r6, %r7}, %fd0; st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};";
  EXPECT_EQ(run(some, std::vector<std::uint32_t>(4), {.threads = 1}).words,
            (std::vector<std::uint32_t>{0xfffffffe, 0xc0000000, 0, 0xc0000000}));
}

TEST(Ptx, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_PRED2(has, refusal("shfl.sync.down.b32 %r4, %r5, 1, 31, -1;"),
               ": instruction 'shfl.sync.down.b32', which is not known here");
  EXPECT_PRED2(has, refusal("ld.const.u32 %r4, [%rd0];"), ": access 'ld.const.u32', which ");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %rd6;"), "expected a register of another size");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %q;"), ": no register or variable '%q'");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %r16;"), ": no register or variable '%r16'");
  EXPECT_PRED2(has, refusal("bra nowhere;"), "no label 'nowhere' in kernel");
  EXPECT_PRED2(has, refusal("bar.sync 1;"), "'1'; expected '0'");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5"), "expected ','");
  EXPECT_THROW(parse(".version 9.0 .entry k( .param .u64 a) { ret;"), std::runtime_error);
  EXPECT_THROW(parse(".visible .func f() { ret; }"), std::runtime_error);
}

}  // namespace
}  // namespace ptx
