#include "src/base/stack.hpp"

#include <arenite/error.hpp>

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <exception>

namespace arenite {
namespace {

/// The lowest address of this thread's stack; of the first thread's as far as `ulimit -s` goes.
std::uintptr_t lowest_address() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  ::pthread_attr_getstack(&attributes, &lowest, &bytes);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(lowest);
}

struct Work {
  const std::function<void()>& call;
  std::exception_ptr thrown;
};

void* run(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  try {
    work.call();
  } catch (...) {
    work.thrown = std::current_exception();
  }
  return nullptr;
}

/// Sizes of stacks that glibc takes as they are.
class Attributes {
 public:
  Attributes() { ::pthread_attr_init(&attributes_); }
  ~Attributes() { ::pthread_attr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  pthread_attr_t* get() noexcept { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

}  // namespace

std::size_t stack_left() {
  // Asking about the first thread reads a file of /proc.
  thread_local const std::uintptr_t lowest = lowest_address();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here > lowest ? here - lowest : 0;
}

void with_stack(std::size_t bytes, const std::function<void()>& work) {
  if (stack_left() >= bytes) return work();
  Attributes attributes;
  constexpr std::size_t for_the_thread = std::size_t{64} << 10;  // its own storage and guard
  ::pthread_attr_setstacksize(attributes.get(), bytes + for_the_thread);
  Work shared{work, nullptr};
  pthread_t thread{};
  if (const int error = ::pthread_create(&thread, attributes.get(), run, &shared); error != 0) {
    throw Failure(
        {.found = "no thread with a stack of " + std::to_string(bytes) +
                  " bytes: " + std::strerror(error),
         .expected = "one, as only " + std::to_string(stack_left()) + " are left of this one's",
         .where = {},
         .hint = "raise `ulimit -s`, or give this thread a larger stack"});
  }
  ::pthread_join(thread, nullptr);
  if (shared.thrown) std::rethrow_exception(shared.thrown);
}

RoomyThreads::RoomyThreads(std::size_t bytes) {
  Attributes attributes;
  std::size_t now = 0;
  if (::pthread_getattr_default_np(attributes.get()) != 0) return;
  ::pthread_attr_getstacksize(attributes.get(), &now);
  if (now >= bytes || ::pthread_attr_setstacksize(attributes.get(), bytes) != 0) return;
  if (::pthread_setattr_default_np(attributes.get()) == 0) before_ = now;
}

RoomyThreads::~RoomyThreads() {
  Attributes attributes;
  if (before_ == 0 || ::pthread_getattr_default_np(attributes.get()) != 0) return;
  if (::pthread_attr_setstacksize(attributes.get(), before_) == 0)
    ::pthread_setattr_default_np(attributes.get());
}

}  // namespace arenite
