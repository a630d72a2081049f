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

void complain(const std::exception& error) noexcept {
  std::cerr << "arenite: " << error.what() << '\n';
}

std::int64_t last_end(const CapturedSet& set) {
  std::int64_t last = 0;
  for (const CapturedProgram& program : set.programs) {
    for (const RecordedStep::Run& run : program.steps.back().runs)
      last = std::max(last, run.time().end);
  }
  return last;
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

std::size_t Collector::begin(Capture& capture) {
  const std::lock_guard lock(mutex_);
  running_.push_back(&capture);
  request_ = capture.request();
  return ++begun_;
}

void Collector::keep(CapturedSet set) {
  if (set.programs.empty() && set.on_devices.empty()) return;
  if (captured_.sets.size() == most_sets) {
    captured_.forgotten_until =
        std::max(captured_.forgotten_until, last_end(captured_.sets.front()));
    captured_.sets.pop_front();
    ++captured_.forgotten;
  }
  captured_.sets.push_back(std::move(set));
  unwritten_ = true;
}

void Collector::write() {
  constexpr int rarely = 20;  // so that it is a twentieth of the process's time
  const Clock::time_point begin = Clock::now();
  unwritten_ = false;
  if (!request_.trace.empty())
    runtime::write("ARENITE_TRACE", request_.trace, to_trace_json(captured_));
  if (!request_.memory.empty())
    runtime::write("ARENITE_MEMORY", request_.memory, to_memory_svg(captured_));
  const Clock::time_point end = Clock::now();
  next_write_ = end + rarely * (end - begin);
}

void Collector::end(Capture& capture) noexcept try {
  const std::lock_guard lock(mutex_);
  std::erase(running_, &capture);
  if (finished_) return;
  keep(capture.result(false));
  if (unwritten_ && Clock::now() >= next_write_) write();
} catch (const std::exception& error) {
  complain(error);
}

void Collector::flush() noexcept try {
  const std::lock_guard lock(mutex_);
  if (unwritten_) write();
} catch (const std::exception& error) {
  complain(error);
}

void Collector::finish() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    for (const Capture* capture : running_) {
      capture->stop();
      keep(capture->result(true));
    }
  } catch (const std::exception& error) {
    complain(error);
  }
  flush();
}

}  // namespace arenite::runtime
