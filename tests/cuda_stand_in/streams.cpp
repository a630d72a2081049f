#include "tests/cuda_stand_in/streams.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_stand_in {

void refuse(const char* what) {
  std::fprintf(stderr, "CUDA's stand-in refuses %s\n", what);
  std::abort();
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Stream::push(const Deed& deed) {
  std::unique_lock lock(mutex_);
  if (!deeds_) {
    deeds_ = std::make_unique<std::array<Deed, room>>();
    thread_ = std::thread([this] { work(); });
  }
  changed_.wait(lock, [&] { return count_ < room; });
  (*deeds_)[(first_ + count_++) % room] = deed;
  lock.unlock();
  changed_.notify_all();
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return count_ == 0;
}

void Stream::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return count_ == 0; });
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (unsigned number = 1;; ++number) {
    changed_.wait(lock, [&] { return count_ > 0 || ending_; });
    if (count_ == 0) return;
    const Deed deed = (*deeds_)[first_];
    lock.unlock();
    if (number % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(number % 97));
    perform(deed);
    lock.lock();
    first_ = (first_ + 1) % room;
    --count_;
    changed_.notify_all();
  }
}

void Stream::perform(const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::nothing:
      break;
    case Deed::Kind::function:
      deed.function(deed.data);
      break;
    case Deed::Kind::copy:
      std::memcpy(deed.to, deed.from, deed.bytes);
      break;
    case Deed::Kind::fill:
      std::memset(deed.to, deed.value, deed.bytes);
      break;
    case Deed::Kind::hand_on: {
      const unsigned long long word = *static_cast<const unsigned long long*>(deed.from);
      auto& into = *static_cast<unsigned long long*>(deed.to);
      if (word != 0 && into == 0) into = word;
      if (deed.told != nullptr) *deed.told = word;
      break;
    }
    case Deed::Kind::mark:
      deed.event->reached.store(deed.mark);
      break;
    case Deed::Kind::graph:
      for (const Deed& inner : deed.graph->deeds) perform(inner);
      break;
  }
}

}  // namespace cuda_stand_in
