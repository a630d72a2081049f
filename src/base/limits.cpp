#include "src/base/limits.hpp"

#include <arenite/error.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <latch>
#include <vector>

namespace arenite {
namespace {

bool is_limited(int what) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource_t>(what), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

/// Threads that wait for each other, so that all are there at once.
class Threads {
 public:
  Threads() = default;
  ~Threads() {
    end_.count_down();
    for (const pthread_t thread : all_) ::pthread_join(thread, nullptr);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// 0, or why not.
  int add() {
    all_.reserve(all_.size() + 1);
    pthread_t thread{};
    const int error = ::pthread_create(&thread, nullptr, wait, &end_);
    if (error == 0) all_.push_back(thread);
    return error;
  }

 private:
  static void* wait(void* end) {
    static_cast<std::latch*>(end)->wait();
    return nullptr;
  }

  std::latch end_{1};
  std::vector<pthread_t> all_;
};

}  // namespace

void expect_address_space(std::size_t bytes, const std::string& whose) {
  if (!is_limited(RLIMIT_AS)) return;
  void* const tried = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (tried != MAP_FAILED) {
    ::munmap(tried, bytes);
    return;
  }
  throw Failure({.found = "the system refused " + std::to_string(bytes >> 20) +
                          " MiB of address space: " + std::strerror(errno),
                 .expected = "as much for " + whose,
                 .where = {},
                 .hint = "raise `ulimit -v`"});
}

void expect_threads(std::size_t count, std::size_t bytes, const std::string& whose) {
  if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_NPROC)) return;
  Threads threads;
  for (std::size_t made = 0; made < count; ++made) {
    const int error = threads.add();
    if (error == 0) continue;
    throw Failure({.found = "the system refused thread " + std::to_string(made + 1) + " of " +
                            std::to_string(count) + ": " + std::strerror(error),
                   .expected = "as many for " + whose,
                   .where = {},
                   .hint = "raise `ulimit -u` or `ulimit -v`, or ask for fewer workers"});
  }
  expect_address_space(bytes, whose);
}

}  // namespace arenite
