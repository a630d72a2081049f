#include "src/runtime/forked.hpp"

#include <pthread.h>

#include <atomic>

#include "src/base/refuse.hpp"

namespace arenite::runtime {
namespace {

std::atomic<bool> runs{false}, forked{false};

}  // namespace

bool is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

void refuse_forked() {
  if (!is_forked()) return;
  refuse("a session of the process that forked this one",
         "work in the process that began it, whose threads a child does not have", {},
         "fork before the first session, or begin another program (exec)");
}

void mark_forks(bool session_runs) {
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] {
    if (runs.load()) forked.store(true);
  });
  if (watched != 0) refuse("no room to watch for fork()", "memory for a few bytes");
  runs.store(session_runs);
}

}  // namespace arenite::runtime
