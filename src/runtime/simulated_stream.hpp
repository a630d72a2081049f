// What GPUs that are threads of the host are made of: streams that do deeds in order, each after a
// moment, and deeds that were recorded. For simulated devices (simulated_device.hpp) and CUDA's
// stand-in (tests/cuda_stand_in), which say what a deed is.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace arenite::runtime::testing {

/// Deeds of which some follow others: `perform` does them by turns as they were recorded, and the
/// other way about as far as they may be done in another order.
template <class Deed>
struct RecordedDeeds {
  std::vector<Deed> deeds, turned;
  std::vector<std::vector<std::size_t>> follow;  ///< by deed: those that it follows

  /// Behind the deeds `behind`, which the next one of that stream follows this one instead of.
  void add(const Deed& deed, std::vector<std::size_t>& behind) {
    follow.push_back(std::exchange(behind, {deeds.size()}));
    deeds.push_back(deed);
  }

  /// Whoever has waited for these deeds has waited for all.
  bool end_in(const std::vector<std::size_t>& last) const {
    std::vector<bool> waited(deeds.size(), false);
    for (const std::size_t deed : last) waited[deed] = true;
    for (std::size_t deed = deeds.size(); deed-- > 0;) {
      if (!waited[deed]) return false;
      for (const std::size_t first : follow[deed]) waited[first] = true;
    }
    return true;
  }

  /// Once all are there.
  void turn() {
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

  template <class F>
  void perform(F one) const {
    const bool other_way = ++times % 2 == 0;
    for (const Deed& deed : other_way ? turned : deeds) one(deed);
  }

 private:
  mutable std::atomic<unsigned> times{0};
};

/// A thread that does what it is given, in order. It allocates when it begins, and never again.
template <class Deed, void (*perform)(const Deed&)>
class SimulatedStream {
 public:
  SimulatedStream() = default;
  ~SimulatedStream() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  SimulatedStream(const SimulatedStream&) = delete;
  SimulatedStream& operator=(const SimulatedStream&) = delete;

  /// The first deed does, otherwise.
  void begin() {
    const std::lock_guard lock(mutex_);
    begin_locked();
  }

  void push(const Deed& deed) {
    std::unique_lock lock(mutex_);
    begin_locked();
    changed_.wait(lock, [&] { return count_ < room; });
    (*deeds_)[(first_ + count_++) % room] = deed;
    lock.unlock();
    changed_.notify_all();
  }
  /// On the calling thread, as if it took no time. Never beside `push`.
  void do_at_once(const Deed& deed) {
    const std::lock_guard lock(mutex_);
    perform(deed);
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return count_ == 0;
  }
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  void begin_locked() {
    if (deeds_) return;
    deeds_ = std::make_unique<std::array<Deed, room>>();
    thread_ = std::thread([this] { work(); });
  }

  void work() {
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

  static constexpr std::size_t room = 1024;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<std::array<Deed, room>> deeds_;
  std::size_t first_ = 0, count_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace arenite::runtime::testing
