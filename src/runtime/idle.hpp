// Sends StarPU's workers to sleep when nobody has work for them: they poll for tasks in a tight
// loop otherwise, one core each. As long as they poll, others that want their cores come first.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace arenite::runtime {

/// Looks once a period whether StarPU has tasks, on a thread of its own. After two looks in a row
/// that found none, and nothing submitted in between, the workers pause until the next submission;
/// so does this thread. No heap calls but in start and stop.
class IdleWatch {
 public:
  /// Workers pause after two of these: within 50 ms.
  static constexpr std::chrono::microseconds default_period{24'000};

  void start(std::chrono::microseconds period = default_period);  ///< workers begin paused
  /// Pauses the workers now, unless somebody has work for them: for who is going to be busy while
  /// they have nothing to do.
  void rest();
  void stop();  ///< leaves the workers awake
  bool paused() const noexcept { return paused_.load(); }

  /// Keeps workers awake while tasks are submitted: one submitted otherwise may never run.
  class Submission {
   public:
    explicit Submission(IdleWatch& watch) noexcept : watch_(watch) {
      watch_.submissions_.fetch_add(1);
      watch_.under_way_.fetch_add(1);
      if (watch_.paused_.load()) [[unlikely]]
        watch_.resume();
    }
    ~Submission() { watch_.under_way_.fetch_sub(1); }
    Submission(const Submission&) = delete;
    Submission& operator=(const Submission&) = delete;

   private:
    IdleWatch& watch_;
  };

 private:
  void watch(std::chrono::microseconds period);
  void pause();  // with the mutex held
  void resume() noexcept;
  bool nothing_to_do() const noexcept;

  // Sequentially consistent, all: of a submission and a pause that meet, one sees the other.
  std::atomic<std::uint64_t> submissions_{0};  // ever begun
  std::atomic<int> under_way_{0};
  std::atomic<bool> paused_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  int hook_ = -1;  ///< StarPU's number of it
  std::thread thread_;
};

/// The process's only one, as StarPU is. Started and stopped with it.
IdleWatch& idle_watch() noexcept;

}  // namespace arenite::runtime
