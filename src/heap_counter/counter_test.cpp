// The counter itself: calls that are known one by one, and what it makes of them.
#include <arenite/runtime/heap_calls.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace arenite::runtime {
namespace {

/// Hides where a pointer comes from: a compiler may leave out what is allocated for nobody.
template <class T>
T* keep(T* p) {
  asm volatile("" : "+r"(p) : : "memory");
  return p;
}

template <class Action>
long heap_calls_of(Action action) {
  const long before = *heap_calls();
  action();
  return *heap_calls() - before;
}

template <class Action>
long map_calls_of(Action action) {
  const long before = *map_calls();
  action();
  return *map_calls() - before;
}

struct HeapCounter : ::testing::Test {
  void SetUp() override {
    ASSERT_TRUE(heap_calls()) << "the heap counter is not preloaded: run this through ctest";
    ASSERT_TRUE(map_calls());
  }
};

TEST_F(HeapCounter, AddsNothingByItself) {
  EXPECT_EQ(heap_calls_of([] {}), 0);
  EXPECT_EQ(map_calls_of([] {}), 0);
  EXPECT_EQ(heap_calls_of([] { std::free(keep<void>(nullptr)); }), 0);
}

/// Calls of allocating 100 bytes, of writing them, and of `free`.
template <class Allocate>
long calls_until_free(Allocate allocate) {
  return heap_calls_of([&] {
    void* p = keep(allocate());
    if (p) std::memset(p, 1, 100);
    std::free(p);
  });
}

TEST_F(HeapCounter, CountsEveryWayToAllocateOnce) {
  EXPECT_EQ(calls_until_free([] { return std::malloc(100); }), 2);
  EXPECT_EQ(calls_until_free([] { return std::calloc(10, 10); }), 2);
  EXPECT_EQ(calls_until_free([] { return std::realloc(nullptr, 100); }), 2);
  EXPECT_EQ(calls_until_free([] { return reallocarray(nullptr, 10, 10); }), 2);
  EXPECT_EQ(calls_until_free([] { return memalign(64, 100); }), 2);
  EXPECT_EQ(calls_until_free([] { return std::aligned_alloc(64, 128); }), 2);
  EXPECT_EQ(calls_until_free([] { return valloc(100); }), 2);
  EXPECT_EQ(calls_until_free([] { return pvalloc(100); }), 2);
  EXPECT_EQ(calls_until_free([] {
              void* p = nullptr;
              return posix_memalign(&p, 64, 100) == 0 ? p : nullptr;
            }),
            2);
}

TEST_F(HeapCounter, CountsNewAndDelete) {
  struct alignas(64) Wide {
    char bytes[128];
  };
  EXPECT_EQ(heap_calls_of([] { delete keep(new int); }), 2);
  EXPECT_EQ(heap_calls_of([] { delete[] keep(new char[1000]); }), 2);
  EXPECT_EQ(heap_calls_of([] { delete keep(new Wide); }), 2);
  EXPECT_EQ(heap_calls_of([] { keep(std::make_shared<int>(1).get()); }), 2);
  EXPECT_EQ(heap_calls_of([] { keep(std::string(100, 'x').data()); }), 2);
}

TEST_F(HeapCounter, CountsWhatTheCLibraryAllocatesForItself) {
  EXPECT_EQ(heap_calls_of([] { std::free(keep(strdup("a copy"))); }), 2);
  EXPECT_GE(heap_calls_of([] { std::fclose(std::fopen("/dev/null", "w")); }), 2);
}

TEST_F(HeapCounter, GrowsAndMovesAsTheCLibraryDoes) {
  char* p = static_cast<char*>(std::malloc(10));
  std::memcpy(p, "arenite", 8);
  EXPECT_EQ(heap_calls_of([&] { p = static_cast<char*>(std::realloc(p, 1 << 20)); }), 1);
  EXPECT_STREQ(p, "arenite");
  EXPECT_EQ(heap_calls_of([&] { p = static_cast<char*>(reallocarray(p, 4, 4)); }), 1);
  EXPECT_STREQ(p, "arenite");
  std::free(p);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(keep(valloc(1))) % 4096, 0u);
  errno = 0;
  volatile std::size_t half = SIZE_MAX / 2;  // so that no compiler sees the overflow coming
  EXPECT_EQ(reallocarray(nullptr, half, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* none = nullptr;
  EXPECT_EQ(posix_memalign(&none, 3, 8), EINVAL);
}

TEST_F(HeapCounter, LosesNoCallOfAnyThread) {
  constexpr int threads = 4, rounds = 20000;
  std::atomic<int> ready{0}, done{0};
  std::atomic<bool> go{false}, end{false};
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&] {
      ++ready;
      while (!go) std::this_thread::yield();
      for (int i = 0; i < rounds; ++i) std::free(keep(std::malloc(static_cast<std::size_t>(i))));
      ++done;
      while (!end) std::this_thread::yield();  // what a thread's end frees is not the question
    });
  }
  while (ready < threads) std::this_thread::yield();
  const long calls = heap_calls_of([&] {
    go = true;
    while (done < threads) std::this_thread::yield();
  });
  end = true;
  for (std::thread& thread : crew) thread.join();
  EXPECT_EQ(calls, 2L * threads * rounds);
}

TEST_F(HeapCounter, SeesALibraryThatIsOpenedLater) {
  void* library = dlopen(ARENITE_TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  const auto allocate = reinterpret_cast<void (*)()>(dlsym(library, "allocate_three_times"));
  ASSERT_TRUE(allocate);
  EXPECT_EQ(heap_calls_of(allocate), 6);
  EXPECT_EQ(dlclose(library), 0);
}

TEST_F(HeapCounter, LeavesTheMessagesOfDlerrorWhole) {
  // Written while the message before it is freed, through the very functions that are counted.
  for (const char* name : {"no_such_function", "nor_such_a_one_with_a_longer_name"}) {
    EXPECT_FALSE(dlsym(RTLD_DEFAULT, name));
    const char* message = dlerror();
    ASSERT_TRUE(message);
    EXPECT_TRUE(std::strstr(message, name)) << message;
  }
  EXPECT_FALSE(dlopen("/no/such/library.so", RTLD_NOW));
  EXPECT_TRUE(std::strstr(dlerror(), "/no/such/library.so"));
  EXPECT_FALSE(dlerror());
}

TEST_F(HeapCounter, CountsMappingsApart) {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* p = nullptr;
  const auto map = [&] {
    p = static_cast<char*>(mmap(nullptr, size, protection, flags, -1, 0));
    ASSERT_NE(p, MAP_FAILED);
    p[0] = 7;
  };
  EXPECT_EQ(map_calls_of(map), 1);
  EXPECT_EQ(map_calls_of([&] {
              p = static_cast<char*>(mremap(p, size, 4 * size, MREMAP_MAYMOVE));
              ASSERT_NE(p, MAP_FAILED);
            }),
            1);
  EXPECT_EQ(p[0], 7);
  void* place = p + 2 * size;
  EXPECT_EQ(map_calls_of([&] {
              EXPECT_EQ(mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
            }),
            1);
  EXPECT_EQ(p[2 * size], 7);
  EXPECT_EQ(map_calls_of([&] { EXPECT_EQ(munmap(p + size, 3 * size), 0); }), 1);
  EXPECT_EQ(map_calls_of([] { sbrk(0); }), 1);
  EXPECT_EQ(map_calls_of([] { EXPECT_EQ(brk(sbrk(0)), 0); }), 2);
  // A large malloc maps, too: that is the heap's affair.
  EXPECT_EQ(map_calls_of([] { std::free(keep(std::malloc(64 << 20))); }), 0);
  EXPECT_EQ(heap_calls_of(map), 0);
  EXPECT_EQ(munmap(p, size), 0);
}

}  // namespace
}  // namespace arenite::runtime
