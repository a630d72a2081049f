// What tests of all rooms share.
#pragma once

#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace arenite::testing {

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
