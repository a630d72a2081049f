#include "codelets/cuda/libraries.hpp"

#include <atomic>

namespace arenite::codelets::cuda {
namespace {

enum class Slot : int { empty, filling, full };

struct FirstFailure {
  std::atomic<Slot> slot{Slot::empty};
  const char *what = "", *text = "";
  int status = 0;
};

FirstFailure& failure() noexcept {
  static constinit FirstFailure first;
  return first;
}

}  // namespace

void note_failure(const char* what, int status, const char* text) noexcept {
  FirstFailure& first = failure();
  Slot expected = Slot::empty;
  if (!first.slot.compare_exchange_strong(expected, Slot::filling, std::memory_order_acquire))
    return;
  first.what = what;
  first.status = status;
  first.text = text;
  first.slot.store(Slot::full, std::memory_order_release);
}

std::string take_failure() {
  FirstFailure& first = failure();
  Slot expected = Slot::full;
  // What another thread is filling in is for the next call; one that takes it is alone with it.
  if (!first.slot.compare_exchange_strong(expected, Slot::filling, std::memory_order_acquire))
    return {};
  std::string found = first.what;
  if (*first.text != '\0') found += std::string(": ") + first.text;
  found += " (" + std::to_string(first.status) + ")";
  first.slot.store(Slot::empty, std::memory_order_release);
  return found;
}

}  // namespace arenite::codelets::cuda
