// What tests of all rooms share.
#pragma once

#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <string>

namespace arenite::testing {

/// How many random cases a test draws of `all`, and has to find: a quarter in checked builds and
/// under sanitizers, where each takes up to ten times as long.
constexpr auto fewer_where_slow(std::integral auto all) {
  return ARENITE_CHECKED || ARENITE_PLAIN_KERNELS ? (all + 3) / 4 : all;
}

/// What the Error says that the action throws.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

/// The statement throws an Error whose message has these words in it.
#define EXPECT_ERROR(words, ...)                                                         \
  do {                                                                                   \
    const std::string message = ::arenite::testing::error_of([&] { __VA_ARGS__; });      \
    EXPECT_NE(message.find(words), std::string::npos) << "the message was: " << message; \
  } while (false)

}  // namespace arenite::testing
