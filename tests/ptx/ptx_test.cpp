// Kernels' PTX, run on the host: what it computes, and which mistakes of kernels it finds.
#include <gtest/gtest.h>

#include "tests/ptx/machine.hpp"
#include "tests/ptx/parser.hpp"

#include <algorithm>
#include <cstring>
#include <string>
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

/// Runs a kernel on words, and on nothing else: twice, with blocks from either end. Counts are
/// those of the first time.
Outcome run(const std::string& body, const std::vector<std::uint32_t>& words, const How& how = {}) {
  const Module module = parse(kernel(body));
  const Entry& entry = module.entries.at("kernel");
  Machine machine(how.counting);
  Counts counts;
  const auto run_once = [&](bool from_the_last) {
    std::vector<std::uint32_t> mine = words;
    std::vector<std::byte> parameters(entry.parameter_bytes);
    const auto address = reinterpret_cast<std::uint64_t>(mine.data());
    std::memcpy(parameters.data() + entry.parameters[0].offset, &address, sizeof(address));
    std::memcpy(parameters.data() + entry.parameters[1].offset, &how.number, sizeof(how.number));
    const Range range{address, address + 4 * mine.size()};
    const Counts more = machine.run({&entry,
                                     how.blocks,
                                     how.threads,
                                     parameters.data(),
                                     {&range, 1},
                                     how.early,
                                     from_the_last});
    if (!from_the_last) counts = more;
    return mine;
  };
  const std::vector<std::uint32_t> first = run_once(false);
  EXPECT_EQ(run_once(true), first);
  return {first, counts};
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
  EXPECT_PRED2(has, fault(with_barrier(""), 64, {.threads = 64}),
               "of block 0: writes shared memory at ");
  EXPECT_PRED2(has, fault("st.global.u32 [%rd0], %r0;", 1),
               "thread 1 of block 0: writes global memory at 0x");
  EXPECT_PRED2(has, fault("st.global.u32 [%rd0], %r0;", 1),
               "which thread 0 of block 0 writes at the same time: st.global.u32 [%rd0], %r0;");
  EXPECT_PRED2(has, fault("st.global.u32 [%rd0], %r1;", 1, {.blocks = 2, .threads = 1}),
               "which thread 0 of block 0 writes ");
  EXPECT_PRED2(has, fault("ld.global.u32 %r4, [%rd0]; st.global.u32 [%rd1], %r4;", 32),
               "of block 0 reads at the same time");
  // One of many that read it reads it again before it writes it.
  for (const std::string space : {"shared", "global"}) {
    const std::string at = space == "shared" ? "[shared]" : "[%rd0]";
    EXPECT_PRED2(
        has,
        fault("st.global.u32 [%rd1], %r0; bar.sync 0; setp.eq.s32 %p1, %r0, 0; " +
                  std::string(space == "shared" ? "@%p1 st.shared.u32 [shared], %r0; " : "") +
                  "bar.sync 0; ld." + space + ".u32 %r4, " + at + "; @%p1 ld." + space +
                  ".u32 %r5, " + at + "; @%p1 st." + space + ".u32 " + at + ", %r5;",
              32),
        "of block 0 reads at the same time");
  }
  // Another block has read it, before two threads of this one did.
  EXPECT_PRED2(has,
               fault("ld.global.u32 %r4, [%rd0]; bar.sync 0; setp.eq.s32 %p1, %r3, 9; "
                     "@%p1 st.global.u32 [%rd0], %r0;",
                     16, {.blocks = 2, .threads = 8}),
               "of block 0 reads at the same time");
  // Volatile accesses meet volatile ones on purpose, and no others.
  EXPECT_EQ(fault("st.volatile.global.u32 [%rd0], %n;", 1), "none");
  EXPECT_PRED2(
      has, fault("st.volatile.global.u32 [%rd0], %n; ld.global.u32 %r4, [%rd0];", 1, {.blocks = 2}),
      "of block 0 writes at the same time");
  EXPECT_PRED2(has,
               fault("setp.eq.s32 %p1, %r0, 0; @!%p1 atom.global.cas.b64 %rd3, [%rd0], %rd1, %rd2; "
                     "@%p1 st.global.u32 [%rd0], %n;",
                     2),
               "of block 0 writes at the same time");
  // Bytes side by side are no race, and the same byte is one.
  const std::string bytes =
      "cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd0, %rd3; mov.u16 %rs0, 7; "
      "st.global.u8 [%rd4], %rs0;";
  EXPECT_EQ(run("mov.u32 %r4, %r0;" + bytes, {0, 0}, {.threads = 8}).words,
            (std::vector<std::uint32_t>{0x07070707, 0x07070707}));
  EXPECT_PRED2(has, fault("shr.u32 %r4, %r0, 1;" + bytes, 2, {.threads = 8}),
               "of block 0 writes at the same time");
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
  EXPECT_PRED2(has, fault("mov.u64 %rd3, 0; ld.global.u32 %r4, [%rd3+-4];", 1),
               "4 bytes at 0xfffffffffffffffc, which are not in the device's");
  EXPECT_PRED2(has, fault("ld.global.v2.u32 {%r4, %r5}, [%rd0+4];", 4), "are not aligned to");
  EXPECT_PRED2(has, fault("st.shared.u32 [shared+1024], %r0;", 1),
               "bytes 1024 to 1028 of 1024 of shared memory");
  EXPECT_PRED2(has, fault("ld.param.u64 %rd3, [kernel_param_0+8];", 1), "of 12 of parameters");
  EXPECT_PRED2(has, fault("ret;", 1, {.threads = 257}), "blocks of 257 threads");
}

TEST(Ptx, FindsBarriersThatNotAllComeTo) {
  EXPECT_PRED2(
      has, fault("setp.lt.s32 %p1, %r0, 40; @%p1 bra on; ret; on: bar.sync 0;", 1, {.threads = 64}),
      "thread 0 of block 0: a barrier that thread 63 of the block left before: ");
  EXPECT_PRED2(has,
               fault("setp.lt.s32 %p1, %r0, 7; @%p1 bra on; bar.sync 0; ret; on: bar.sync 0;", 1),
               "thread 0 of block 0: a barrier, while thread 7 of the block waits at another one");
}

TEST(Ptx, NamesTheLine) {
  EXPECT_PRED2(has, fault("mov.u32 %r4, 7;\n\n  st.global.u32 [%rd0+-4], %r4;\n", 1),
               "kernel: line 27, thread 0 of block 0: 4 bytes at ");
}

/// Each thread has its own, of which nobody has cleared anything: nor of registers.
TEST(Ptx, GivesThreadsMemoryOfTheirOwn) {
  const std::string own = R"(
  .local .align 8 .b8 depot[16];
  mov.b64 %rd3, depot;
  cvta.local.u64 %rd4, %rd3;
  cvta.to.local.u64 %rd5, %rd4;
  st.local.u32 [%rd5+4], %r0;
  bar.sync 0;
  ld.local.v2.u32 {%r4, %r5}, [%rd5];
  setp.ne.s32 %p1, %r4, -1;
  @%p1 mov.u32 %r5, %r4;
  st.global.u32 [%rd1], %r5;)";
  EXPECT_EQ(run(own, {0, 0, 0, 0}, {.blocks = 2, .threads = 2}).words,
            (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_PRED2(has, fault(".local .b32 one; st.local.u32 [one+4], %r0;", 1), "of local memory");
  EXPECT_EQ(
      run("mov.u32 %r4, 7; st.global.u32 [%rd1], %r5;", {0, 0}, {.blocks = 2, .threads = 1}).words,
      (std::vector<std::uint32_t>(2, 0xffffffff)));
}

/// And of modules, which they may read.
TEST(Ptx, ReadsVariablesOfTheModule) {
  const Module module = parse(R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .b8 bytes[6] = {1, 2, 255};
.const .align 8 .u64 number = 77;
.visible .entry kernel()
{
  ret;
}
)");
  const auto& words = module.variables.at("bytes");
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0], 0xff0201U);
  EXPECT_EQ(module.variables.at("number")[0], 77U);
  EXPECT_EQ(module.entries.at("kernel").variables.size(), 2U);
  EXPECT_THROW(parse(".global .b8 one[2] = {1, 2, 3};"), std::runtime_error);
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
  EXPECT_EQ(counts(0).wavefronts, 1U);
  EXPECT_EQ(counts(1).wavefronts, 1U);
  EXPECT_EQ(counts(8).wavefronts, 8U);
  EXPECT_EQ(counts(0).sectors, 1U);
  EXPECT_LE(counts(1).sectors, 5U);  // memory may begin within one
  EXPECT_EQ(counts(8).sectors, 32U);
  EXPECT_EQ(counts(8).shared_turns, 1U);
}

TEST(Ptx, CountsWhatWarpsDo) {
  const auto counts = [](const std::string& body, const How& how) {
    return run(body, std::vector<std::uint32_t>(512), how).counts;
  };
  const Counts none = counts("", {.blocks = 2, .threads = 48, .counting = true});
  EXPECT_EQ(none.grids, 1U);
  EXPECT_EQ(none.threads, 96U);
  // Of either warp of a block, also the one that is half empty: what stands in each kernel.
  EXPECT_EQ(none.instructions % 4, 0U);
  EXPECT_EQ(none.multiplications + none.global_accesses + none.sectors + none.shared_turns, 0U);
  // One that no thread takes part in has to be read all the same.
  const std::string some = R"(
  setp.lt.s32 %p1, %r0, 32;
  shl.b32 %r4, %r0, 4;
  mov.u32 %r5, shared;
  add.s32 %r6, %r5, %r4;
  @%p1 ld.shared.v4.f32 {%f0, %f1, %f2, %f3}, [%r6];
  @%p1 ld.shared.v2.f32 {%f0, %f1}, [%r6];
  fma.rn.f32 %f4, %f0, %f1, %f2;
  mul.f32 %f5, %f4, %f4;
  mul.lo.s32 %r7, %r4, %r4;
  st.global.f32 [%rd1], %f5;)";
  const Counts more = counts(some, {.blocks = 2, .threads = 48, .counting = true});
  EXPECT_EQ(more.instructions - none.instructions, 4U * 10);
  EXPECT_EQ(more.multiplications, 4U * 2);
  EXPECT_EQ(more.global_accesses, 4U);
  // 16 bytes for each of 8 threads at a time; 8 for each of 16, a word of each second bank.
  EXPECT_EQ(more.shared_turns, 2U * (4 + 2));
  EXPECT_EQ(more.wavefronts, 2U * (4 + 2 * 2));
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

/// As the compiler takes it where an address has been a pointer.
TEST(Ptx, SharedMemoryHasAddressesOfBothSizes) {
  const std::string wide = R"(
    ld.global.u32 %r4, [%rd1];
    mov.u64 %rd3, shared;
    mul.wide.s32 %rd4, %r0, 4;
    add.s64 %rd5, %rd3, %rd4;
    st.shared.u32 [%rd5], %r4;
    bar.sync 0;
    mov.u32 %r5, shared;
    ld.shared.u32 %r6, [%r5];
    ld.shared.u32 %r7, [%rd3+4];
    add.s32 %r8, %r6, %r7;
    st.global.u32 [%rd1], %r8;)";
  EXPECT_EQ(run(wide, {5, 7, 9}, {.threads = 3}).words, (std::vector<std::uint32_t>{12, 12, 12}));
  EXPECT_PRED2(has, refusal("st.shared.u32 [%rs0], %r4;"), "an address of another size");
}

TEST(Ptx, RefusesByNameWhatItDoesNotKnow) {
  EXPECT_PRED2(has, refusal("shfl.sync.down.b32 %r4, %r5, 1, 31, -1;"),
               ": instruction 'shfl.sync.down.b32', which is not known here");
  EXPECT_PRED2(has, refusal("ld.const.u32 %r4, [%rd0];"), ": access 'ld.const.u32', which ");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %rd6;"), "expected a register of another size");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %q;"), ": no register or variable '%q'");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %r16;"), ": no register or variable '%r16'");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5, %r4294967296;"), ": no register or variable ");
  EXPECT_PRED2(has, refusal("mov.b64 {%rs0, %rs1}, %rd0;"), "expected a register of another size");
  EXPECT_PRED2(has, refusal("atom.global.cas.b64 %r1, [%rd0], %rd1, %rd2;"), " of another size");
  EXPECT_PRED2(has, refusal("bar.red.or.pred %r1, 0, %p1;"), "expected a register of another size");
  EXPECT_PRED2(has, refusal("ld.global.v4.f32 %f0, [%rd0];"), "expected '{'");
  EXPECT_PRED2(has, refusal("ld.global.v2.u8 {%r0, %rs0}, [%rd0];"), "registers of one size");
  EXPECT_PRED2(has, refusal("bra nowhere;"), "no label 'nowhere' in kernel");
  EXPECT_PRED2(has, refusal("bar.sync 1;"), "'1'; expected '0'");
  EXPECT_PRED2(has, refusal("add.s32 %r4, %r5"), "expected ','");
  EXPECT_THROW(parse(".version 9.0 .entry k( .param .u64 a) { ret;"), std::runtime_error);
  EXPECT_THROW(parse(".visible .func f() { ret; }"), std::runtime_error);
}

}  // namespace
}  // namespace ptx
