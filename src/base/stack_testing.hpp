// For tests: threads with little stack.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <functional>
#include <memory>

namespace arenite::testing {

inline constexpr std::size_t kib = 1024;

/// On a thread with so much stack, and no more: glibc would hand on the larger one of another.
inline void on_thread(std::size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  const auto free_it = [](void* memory) { std::free(memory); };
  const std::unique_ptr<void, decltype(free_it)> stack(std::aligned_alloc(4 * kib, bytes), free_it);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stack.get(), bytes), 0);
  pthread_t thread{};
  const auto call = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace arenite::testing
