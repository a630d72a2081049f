#include "tests/cuda_stand_in/state.hpp"

#include <cstdlib>
#include <string>
#include <utility>

namespace cuda_stand_in {
namespace {

cudaError_t make_stream(cudaStream_t* stream) {
  not_captured("a new stream");
  touch();
  auto* made = new Stream(mine().device);
  const std::lock_guard lock(state().mutex);
  state().streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make_stream(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return make_stream(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  not_captured("an end of a stream");
  touch();
  Stream& stream = stream_of(handle);
  stream.deeds.finish();
  {
    const std::lock_guard lock(state().mutex);
    state().streams.erase(&stream);
  }
  delete &stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  not_captured("waiting for a stream");
  touch();
  stream_of(stream).deeds.finish();
  return outcome();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  not_captured("a question about a stream");
  touch();
  if (broken()) return outcome();
  return stream_of(stream).deeds.idle() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  not_captured("a new event");
  touch();
  auto* made = new Event;
  made->device = mine().device;
  const std::lock_guard lock(state().mutex);
  state().events.insert(made);
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  not_captured("an end of an event");
  touch();
  Event& event = event_of(handle);
  while (event.reached.load() < event.marked.load()) std::this_thread::yield();
  {
    const std::lock_guard lock(state().mutex);
    state().events.erase(&event);
  }
  delete &event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  Event& event = event_of(handle);
  Stream& of = stream_of(stream);
  if (event.device != of.device) refuse("an event in a stream of another device");
  if (mine().capture.broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (mine().capture.has(of)) {
    event.graph = mine().capture.graph;
    event.recorded = mine().capture.behind[&of];
    return outcome();
  }
  not_captured("an event of a stream that is not captured");
  enqueue(stream, {.kind = Deed::Kind::mark, .event = &event, .mark = ++event.marked});
  return outcome();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  static const bool refused = std::getenv("CUDA_STAND_IN_NO_BRANCHES") != nullptr;
  mine().capture.broken = mine().capture.broken || (refused && mine().capture.graph != nullptr);
  if (mine().capture.broken) return failed(cudaErrorStreamCaptureUnsupported);
  const Event& event = event_of(handle);
  if (mine().capture.graph == nullptr || event.graph != mine().capture.graph)
    refuse("a wait for an event of no capture, or of another (which it does not imitate)");
  auto& behind = mine().capture.behind[&stream_of(stream)];
  behind.insert(behind.end(), event.recorded.begin(), event.recorded.end());
  return outcome();
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  not_captured("a question about an event");
  touch();
  const Event& event = event_of(handle);
  if (broken()) return outcome();
  return event.reached.load() >= event.marked.load() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  not_captured("waiting for an event");
  touch();
  const Event& event = event_of(handle);
  while (event.reached.load() < event.marked.load()) std::this_thread::yield();
  return outcome();
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (event_of(begin).device != event_of(end).device) refuse("a time between two devices");
  *milliseconds = 0.5f;
  return outcome();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  not_captured("a second capture");
  touch();
  if (mode != cudaStreamCaptureModeThreadLocal) refuse("a capture that minds other threads");
  if (handle == nullptr) refuse("a capture of the default stream");
  mine().capture.origin = &stream_of(handle);
  mine().capture.graph = new Graph;
  mine().capture.graph->device = mine().capture.origin->device;
  mine().capture.behind = {{mine().capture.origin, {}}};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (mine().capture.graph == nullptr || mine().capture.origin != &stream_of(handle))
    refuse("an end of no capture");
  if (mine().capture.broken) {
    delete std::exchange(mine().capture, {}).graph;
    *graph = nullptr;
    return failed(cudaErrorStreamCaptureInvalidated);
  }
  if (!mine().capture.graph->deeds.end_in(mine().capture.behind[mine().capture.origin]))
    refuse("a capture with a stream that nobody waits for");
  *graph = reinterpret_cast<cudaGraph_t>(std::exchange(mine().capture, {}).graph);
  const std::lock_guard lock(state().mutex);
  for (Event* event : state().events) {
    if (event->graph == reinterpret_cast<Graph*>(*graph)) event->graph = nullptr;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  not_captured("a graph made executable");
  touch();
  const auto& recorded = *reinterpret_cast<Graph*>(graph);
  auto* made = new Graph;
  made->device = recorded.device;
  made->deeds.deeds = recorded.deeds.deeds;
  made->deeds.follow = recorded.deeds.follow;
  made->deeds.turn();
  *executable = reinterpret_cast<cudaGraphExec_t>(made);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  touch();
  const auto* graph = reinterpret_cast<Graph*>(executable);
  if (graph->device != mine().device) refuse("a graph to destroy with another device current");
  finish_all();  // CUDA lets it go once it has ended
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  not_captured("a graph to upload");
  touch();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  not_captured("a graph to launch");
  auto* graph = reinterpret_cast<Graph*>(executable);
  if (graph->device != stream_of(stream).device) refuse("a graph in a stream of another device");
  ++state().graph_launches;
  if (broken()) return outcome();
  enqueue(stream, {.kind = Deed::Kind::graph, .graph = graph});
  return cudaSuccess;
}

}  // extern "C"
