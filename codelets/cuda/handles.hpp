// The handles of NVIDIA's libraries: one for each thread and device.
//
// `prepare` and `warm_up_libraries` make them; `run` only looks them up. (It makes one too where a
// prepared kernel runs on a thread that nobody has warmed up, as tests do.)
#pragma once

#include <arenite/error.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace arenite::codelets::cuda {

/// Whether there is a GPU at all. Asks the driver once; starts no context.
bool has_device() noexcept;

/// The device that this thread's calls go to.
int current_device() noexcept;

/// This thread's handle for its current device, made where there is none yet.
cublasStatus_t find_handle(cublasLtHandle_t& handle) noexcept;

/// Throws Error unless the call of a library went well.
inline void expect_success(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail({.found = what + ": " + cublasLtGetStatusString(status), .expected = "success"});
}

/// Of several calls of a library the first that failed.
template <class Status>
class FirstFailure {
 public:
  FirstFailure& operator<<(Status status) {
    if (good()) status_ = status;
    return *this;
  }
  Status status() const { return status_; }
  bool good() const { return status_ == Status{}; }

 private:
  Status status_{};
};

/// Handles that threads leave behind go to the next thread. They are never destroyed: when the
/// process ends, the driver may be gone before they are.
template <class Handle, auto create>
class ThreadHandles {
 public:
  using Status = decltype(create(nullptr));

  static Status find(Handle& handle) noexcept {
    const auto device = static_cast<std::size_t>(current_device());
    thread_local Mine mine;
    if (device < mine.handles.size() && mine.handles[device] != nullptr) {
      handle = mine.handles[device];
      return Status{};
    }
    Handle made = left_behind(device);
    if (made == nullptr) {
      if (const Status status = create(&made); status != Status{}) return status;
    }
    if (device >= mine.handles.size()) mine.handles.resize(device + 1, nullptr);
    handle = mine.handles[device] = made;
    return Status{};
  }

 private:
  struct Pool {
    std::mutex mutex;
    std::map<std::size_t, std::vector<Handle>> by_device;
  };
  static Pool& pool() {
    static Pool* const kept = new Pool;
    return *kept;
  }

  struct Mine {
    std::vector<Handle> handles;

    ~Mine() {
      const std::lock_guard lock(pool().mutex);
      for (std::size_t device = 0; device < handles.size(); ++device) {
        if (handles[device] != nullptr) pool().by_device[device].push_back(handles[device]);
      }
    }
  };

  static Handle left_behind(std::size_t device) {
    const std::lock_guard lock(pool().mutex);
    std::vector<Handle>& handles = pool().by_device[device];
    if (handles.empty()) return nullptr;
    const Handle last = handles.back();
    handles.pop_back();
    return last;
  }
};

/// Memory of the current device, and a stream, for one call while a program is built: a library may
/// refuse only then what its heuristics chose, and it loads its code then, which it must not while
/// a graph is captured.
class Trial {
 public:
  explicit Trial(std::int64_t bytes) noexcept;
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// False where the device has no memory left for it.
  bool possible() const noexcept { return memory_ != nullptr; }
  void* memory() const noexcept { return memory_; }
  cudaStream_t stream() const noexcept { return stream_; }
  /// Waits for what the stream holds: whether all went well.
  bool ends_well() const noexcept;

 private:
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// What a library's heuristics chose, by what they were asked: `supports`, `workspace` and
/// `prepare` must be given the same answer, and it takes long.
template <class Question, class Answer>
class Answers {
 public:
  template <class Ask>
  Answer get(const Question& question, Ask ask) {
    const std::pair key(current_device(), question);
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    return known_.emplace(key, ask()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, Question>, Answer> known_;
};

}  // namespace arenite::codelets::cuda
