// What every function that C calls needs: no exception leaves it, and messages are the caller's.
#pragma once

#include <arenite/error.hpp>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

namespace arenite::c_api {

/// A copy for the caller, who frees it with free(). Null where there is no memory for it.
inline char* copy_text(std::string_view text) noexcept {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

/// Runs `action`; what it throws goes to handle(message, invalid), where `invalid` says whether
/// other input would have mended it.
template <class Action, class Handler>
void guarded(Action action, Handler handle) noexcept {
  try {
    action();
  } catch (const Failure& failure) {
    handle(failure.what(), false);
  } catch (const Error& error) {
    handle(error.what(), true);
  } catch (const std::bad_alloc&) {
    handle("no memory left", false);
  } catch (const std::exception& error) {
    handle(error.what(), false);
  } catch (...) {
    handle("an unknown error", false);
  }
}

}  // namespace arenite::c_api
