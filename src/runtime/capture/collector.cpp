#include "src/runtime/capture/collector.hpp"

#include "src/base/atomic_file.hpp"
#include "src/runtime/capture/writers.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <utility>

namespace arenite::runtime {
namespace {

/// A process may make models by the thousand: of that many a trace could not be looked at anyway.
constexpr std::size_t most_sets = 32;

void write(const char* variable, const std::string& path, const std::string& text) {
  AtomicFile file(path, std::string(variable) + "='" + path + "'");
  file.write(text);
  file.commit();
}

}  // namespace

Collector& collector() {
  static Collector& instance = [&]() -> Collector& {
    auto* made = new Collector;
    std::atexit([] { collector().finish(); });
    return *made;
  }();
  return instance;
}

void Collector::begin(Capture& capture) {
  const std::lock_guard lock(mutex_);
  running_.push_back(&capture);
}

void Collector::keep(CapturedSet set) {
  if (set.programs.empty() && set.on_devices.empty()) return;
  if (sets_.size() == most_sets) {
    sets_.pop_front();
    ++forgotten_;
  }
  sets_.push_back(std::move(set));
}

void Collector::write(const CaptureRequest& request) const {
  const std::vector<CapturedSet> sets(sets_.begin(), sets_.end());
  if (!request.trace.empty()) runtime::write("ARENITE_TRACE", request.trace, to_trace_json(sets));
  if (!request.memory.empty())
    runtime::write("ARENITE_MEMORY", request.memory, to_memory_svg(sets));
}

void Collector::end(Capture& capture) noexcept try {
  const std::lock_guard lock(mutex_);
  std::erase(running_, &capture);
  if (finished_) return;
  keep(capture.result(false));
  write(capture.request());
} catch (const std::exception& error) {
  std::cerr << "arenite: " << error.what() << '\n';
}

void Collector::finish() noexcept try {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  if (running_.empty()) return;
  for (const Capture* capture : running_) keep(capture->result(true));
  write(running_.front()->request());
} catch (const std::exception& error) {
  std::cerr << "arenite: " << error.what() << '\n';
}

}  // namespace arenite::runtime
