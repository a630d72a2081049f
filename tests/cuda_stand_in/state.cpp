#include "tests/cuda_stand_in/state.hpp"

#include <cstdio>
#include <cstdlib>

namespace cuda_stand_in {
namespace {

void report() {
  const char* file = std::getenv("CUDA_STAND_IN_REPORT");
  if (file == nullptr) return;
  std::FILE* out = std::fopen(file, "w");
  if (out == nullptr) return;
  std::string contexts;
  for (int i = 0; i < state().gpus; ++i) {
    if (state().contexts[static_cast<std::size_t>(i)])
      contexts += (contexts.empty() ? "" : ", ") + std::to_string(i);
  }
  std::size_t left = 0;
  for (const std::size_t bytes : state().in_use) left += bytes;
  std::fprintf(out,
               "{\"contexts\": [%s], \"launches\": %ld, \"early_launches\": %ld, "
               "\"graph_launches\": %ld, "
               "\"step_launches\": %ld, \"copies\": %ld, \"device_bytes_left\": %zu}\n",
               contexts.c_str(), state().launches.load(), state().early_launches.load(),
               state().graph_launches.load(), state().graph_launches - state().built,
               state().copies.load(), left);
  std::fclose(out);
}

}  // namespace

Thread& mine() {
  thread_local Thread thread;
  return thread;
}

State::State() {
  if (const char* said = std::getenv("CUDA_STAND_IN_GPUS")) gpus = std::atoi(said);
  if (const char* said = std::getenv("CUDA_STAND_IN_LAUNCHES")) most_launches = std::atol(said);
  std::atexit(report);
}

/// Never destroyed: streams' threads may outlive everything else.
State& state() {
  static State* const kept = new State;
  return *kept;
}

cudaError_t failed(cudaError_t error) {
  if (error != cudaSuccess) mine().last = error;
  return error;
}

bool broken() {
  return state().most_launches >= 0 && state().graph_launches > state().most_launches;
}
cudaError_t outcome() { return broken() ? failed(cudaErrorIllegalAddress) : cudaSuccess; }

void touch() {
  mine().used = true;
  state().contexts[static_cast<std::size_t>(mine().device)] = true;
}

void not_captured(const char* what) {
  if (mine().capture.graph != nullptr) refuse((std::string(what) + " within a capture").c_str());
}

Stream& stream_of(cudaStream_t handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (handle == nullptr) {
    Stream*& legacy = s.legacy[static_cast<std::size_t>(mine().device)];
    if (legacy == nullptr) legacy = new Stream(mine().device);
    return *legacy;
  }
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (!s.streams.contains(stream)) refuse("a stream that is gone");
  return *stream;
}

Event& event_of(cudaEvent_t handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto* event = reinterpret_cast<Event*>(handle);
  if (!s.events.contains(event)) refuse("an event that is gone");
  return *event;
}

void enqueue(cudaStream_t handle, const Deed& deed) {
  touch();
  Stream& stream = stream_of(handle);
  if (mine().capture.has(stream)) {
    mine().capture.graph->deeds.add(deed, mine().capture.behind[&stream]);
  } else {
    if (mine().capture.graph != nullptr && handle == nullptr)
      refuse("the default stream within a capture");
    stream.push(deed);
  }
}

void finish_all() {
  std::vector<Stream*> all;
  {
    const std::lock_guard lock(state().mutex);
    for (Stream* stream : state().streams) {
      if (stream->device == mine().device) all.push_back(stream);
    }
    if (Stream* legacy = state().legacy[static_cast<std::size_t>(mine().device)])
      all.push_back(legacy);
  }
  for (Stream* stream : all) stream->deeds.finish();
}

}  // namespace cuda_stand_in

/// Called by its name, as of the library in src/cuda_counter.
extern "C" void arenite_cuda_programs_are_built() {
  using cuda_stand_in::state;
  state().built = state().graph_launches.load();
}
