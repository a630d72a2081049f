#include "tests/cuda_stand_in/streams.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_stand_in {

void refuse(const char* what) {
  std::fprintf(stderr, "CUDA's stand-in refuses %s\n", what);
  std::abort();
}

void Graph::turn() {
  std::vector<bool> done(deeds.size(), false);
  const auto ready = [&](std::size_t deed) {
    return !done[deed] && std::ranges::all_of(follow[deed], [&](auto d) { return done[d]; });
  };
  while (turned.size() < deeds.size()) {
    std::size_t last = deeds.size() - 1;
    while (!ready(last)) --last;
    done[last] = true;
    turned.push_back(deeds[last]);
  }
}

bool Graph::ends_in(const std::vector<std::size_t>& last) const {
  std::vector<bool> waited(deeds.size(), false);
  for (const std::size_t deed : last) waited[deed] = true;
  for (std::size_t deed = deeds.size(); deed-- > 0;) {
    if (!waited[deed]) return false;
    for (const std::size_t first : follow[deed]) waited[first] = true;
  }
  return true;
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
  static const bool at_once = std::getenv("CUDA_STAND_IN_AT_ONCE") != nullptr;
  std::unique_lock lock(mutex_);
  if (at_once) {
    perform(deed);
    return;
  }
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
    case Deed::Kind::graph: {
      const bool turned = ++deed.graph->launches % 2 == 0;
      for (const Deed& inner : turned ? deed.graph->turned : deed.graph->deeds) perform(inner);
      break;
    }
  }
}

}  // namespace cuda_stand_in
