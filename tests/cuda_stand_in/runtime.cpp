// The functions of CUDA's runtime library that programs of ours and StarPU call, on GPUs that are
// threads of the host (streams.hpp): preloaded, they stand before libcudart's. What runs is then
// all of a build with CUDA but its kernels: those do nothing, unless a test gives functions to
// streams in their place (enqueued_loops.hpp); the one that hands status words on does.
//
// CUDA_STAND_IN_GPUS says how many GPUs there are (2), CUDA_STAND_IN_REPORT names a file for what
// was asked of them, in JSON, when the process ends. After CUDA_STAND_IN_LAUNCHES launches of
// graphs the GPUs fail, as on an illegal address; with CUDA_STAND_IN_AT_ONCE they take no time, and
// what a step takes is the host's; with CUDA_STAND_IN_NO_BRANCHES no stream joins a capture of
// another.
#include "tests/cuda_stand_in/streams.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cuda_stand_in {
namespace {

constexpr std::size_t memory = std::size_t{1} << 30;
constexpr int most_gpus = 8;

thread_local int current = 0;
thread_local bool used = false;  // the thread's current device is more than the default
thread_local cudaError_t last = cudaSuccess;

/// What a thread captures: streams join by waiting for an event of the capture.
struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  bool broken = false;  // nothing more is captured, and the end says so
  std::map<Stream*, std::vector<std::size_t>> behind;  // deeds that a stream's next one follows

  bool has(Stream& stream) const { return graph != nullptr && behind.contains(&stream); }
};
thread_local Capture capture;

struct Allocation {
  std::size_t bytes;
  int device;
};

struct State {
  std::mutex mutex;
  int gpus = 2;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<std::uintptr_t, Allocation> allocations, pinned;
  std::map<const void*, std::string> kernels;  // by the host's stub
  std::set<const void*> loaded;
  std::array<Stream*, most_gpus> legacy{};
  std::array<std::size_t, most_gpus> in_use{};
  std::array<std::atomic<bool>, most_gpus> contexts{};
  std::atomic<long> launches{0}, graph_launches{0}, copies{0};
  std::atomic<long> built{0};  // graphs launched by the time that programs were built
  long most_launches = -1;     // below 0: they never fail

  State() {
    if (const char* said = std::getenv("CUDA_STAND_IN_GPUS")) gpus = std::atoi(said);
    if (const char* said = std::getenv("CUDA_STAND_IN_LAUNCHES")) most_launches = std::atol(said);
    std::atexit(report);
  }
  static void report();
};

/// Never destroyed: streams' threads may outlive everything else.
State& state() {
  static State* const kept = new State;
  return *kept;
}

void State::report() {
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
               "{\"contexts\": [%s], \"launches\": %ld, \"graph_launches\": %ld, "
               "\"step_launches\": %ld, \"copies\": %ld, \"device_bytes_left\": %zu}\n",
               contexts.c_str(), state().launches.load(), state().graph_launches.load(),
               state().graph_launches - state().built, state().copies.load(), left);
  std::fclose(out);
}

cudaError_t failed(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

/// The GPUs have failed: calls say so from then on.
bool broken() {
  return state().most_launches >= 0 && state().graph_launches > state().most_launches;
}
cudaError_t outcome() { return broken() ? failed(cudaErrorIllegalAddress) : cudaSuccess; }

/// The call makes the current device's context, where there is none yet.
void touch() {
  used = true;
  state().contexts[static_cast<std::size_t>(current)] = true;
}

/// Of calls that would end a capture, on the thread that captures.
void not_captured(const char* what) {
  if (capture.graph != nullptr) refuse((std::string(what) + " within a capture").c_str());
}

Stream& stream_of(cudaStream_t handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (handle == nullptr) {
    Stream*& legacy = s.legacy[static_cast<std::size_t>(current)];
    if (legacy == nullptr) legacy = new Stream(current);
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
  if (capture.has(stream)) {
    Graph& graph = *capture.graph;
    graph.follow.push_back(std::exchange(capture.behind[&stream], {graph.deeds.size()}));
    graph.deeds.push_back(deed);
  } else {
    if (capture.graph != nullptr && handle == nullptr)
      refuse("the default stream within a capture");
    stream.push(deed);
  }
}

const Allocation* find(const std::map<std::uintptr_t, Allocation>& all, const void* at,
                       std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto it = all.upper_bound(address);
  if (it == all.begin()) return nullptr;
  --it;
  return address + bytes <= it->first + it->second.bytes ? &it->second : nullptr;
}

bool on_device(const void* at, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return find(s.allocations, at, bytes) != nullptr;
}
bool is_pinned(const void* at, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return find(s.pinned, at, bytes) != nullptr;
}

void check_copy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault) {
    if (to_device != on_device(to, bytes) || from_device != on_device(from, bytes))
      refuse("a copy of another direction than it says");
  }
  for (const void* side : {to, from}) {
    if (capture.graph != nullptr && !on_device(side, bytes) && !is_pinned(side, bytes))
      refuse("a recorded copy of memory that is not pinned");
  }
  ++state().copies;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  check_copy(to, from, bytes, kind);
  enqueue(stream, {.kind = Deed::Kind::copy, .to = to, .from = from, .bytes = bytes});
  return cudaSuccess;
}

cudaError_t allocate(void** made, std::size_t bytes, bool there) {
  State& s = state();
  touch();
  const std::lock_guard lock(s.mutex);
  auto& in_use = s.in_use[static_cast<std::size_t>(current)];
  if (there && in_use + bytes > memory) return failed(cudaErrorMemoryAllocation);
  constexpr std::size_t alignment = 512;
  *made = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  std::memset(*made, 0xa5, bytes);  // nobody has cleared it
  (there ? s.allocations : s.pinned)[reinterpret_cast<std::uintptr_t>(*made)] = {bytes, current};
  if (there) in_use += bytes;
  return cudaSuccess;
}

cudaError_t free_from(std::map<std::uintptr_t, Allocation>& all, void* at) {
  State& s = state();
  touch();
  if (at == nullptr) return cudaSuccess;
  const std::lock_guard lock(s.mutex);
  const auto known = all.find(reinterpret_cast<std::uintptr_t>(at));
  if (known == all.end()) refuse("memory to free that was not allocated");
  if (&all == &s.allocations) {
    if (known->second.device != current) refuse("memory to free with another device current");
    s.in_use[static_cast<std::size_t>(known->second.device)] -= known->second.bytes;
  }
  all.erase(known);
  std::free(at);
  return cudaSuccess;
}

cudaError_t launch(const void* stub, void** arguments, cudaStream_t handle) {
  State& s = state();
  if (capture.broken) return failed(cudaErrorStreamCaptureInvalidated);
  std::string name;
  {
    const std::lock_guard lock(s.mutex);
    const auto known = s.kernels.find(stub);
    if (known == s.kernels.end()) refuse("a kernel that nobody registered");
    if (capture.graph == nullptr) {
      s.loaded.insert(stub);
    } else if (!s.loaded.contains(stub)) {
      refuse("a kernel within a capture that never ran: its code may have to be loaded");
    }
    if (known->second.find("hand_on_word") != std::string::npos) name = "hand_on_word";
  }
  if (stream_of(handle).device != current) refuse("a launch with another device current");
  ++s.launches;
  Deed deed;
  if (!name.empty()) {
    deed.kind = Deed::Kind::hand_on;
    deed.from = *static_cast<const void**>(arguments[0]);
    deed.to = *static_cast<void**>(arguments[1]);
    deed.told = *static_cast<unsigned long long**>(arguments[2]);
  }
  enqueue(handle, deed);
  return cudaSuccess;
}

/// All that the current device's streams hold.
void finish_all() {
  std::vector<Stream*> all;
  {
    const std::lock_guard lock(state().mutex);
    for (Stream* stream : state().streams) {
      if (stream->device == current) all.push_back(stream);
    }
    if (Stream* legacy = state().legacy[static_cast<std::size_t>(current)]) all.push_back(legacy);
  }
  for (Stream* stream : all) stream->finish();
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration configuration;

cudaError_t make_stream(cudaStream_t* stream) {
  not_captured("a new stream");
  touch();
  auto* made = new Stream(current);
  const std::lock_guard lock(state().mutex);
  state().streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

/// What cuCtxGetCurrent gives.
int current_context(void** context) {
  static int something;
  *context = used ? &something : nullptr;
  return 0;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

/// Called by its name, as of the library in src/cuda_counter.
void arenite_cuda_programs_are_built() { state().built = state().graph_launches.load(); }

// Kernels. ---------------------------------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  const std::lock_guard lock(state().mutex);
  state().kernels[stub] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t,
                               cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* stub, dim3, dim3, void** arguments, std::size_t,
                             cudaStream_t stream) {
  return launch(stub, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  if (config->gridDim.x == 0 || config->blockDim.x == 0 || config->blockDim.x > 1024)
    refuse("a grid of no blocks, or of blocks of too many threads");
  return launch(stub, arguments, config->stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, {.kind = Deed::Kind::function, .function = function, .data = data});
  return cudaSuccess;
}

// Devices. ---------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  *count = state().gpus;
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "stand-in %d", device);
  properties->totalGlobalMem = memory;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->pciBusID = device + 1;
  properties->unifiedAddressing = properties->canMapHostMemory = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  current = device;
  touch();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  not_captured("waiting for a device");
  touch();
  finish_all();
  return outcome();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  touch();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal address, on a stand-in";
  return error == cudaSuccess ? "no error" : "an error of the stand-in's";
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *result = cudaDriverEntryPointSuccess;
  if (std::strcmp(name, "cuCtxGetCurrent") != 0) refuse(name);
  *found = reinterpret_cast<void*>(current_context);
  return cudaSuccess;
}

// Memory. ----------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  touch();
  const std::lock_guard lock(state().mutex);
  *total = memory;
  *free = memory - state().in_use[static_cast<std::size_t>(current)];
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  not_captured("an allocation");
  return allocate(made, bytes, true);
}
cudaError_t cudaFree(void* at) {
  not_captured("freeing");
  return free_from(state().allocations, at);
}
cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned) {
  not_captured("an allocation");
  return allocate(made, bytes, false);
}
cudaError_t cudaFreeHost(void* at) {
  not_captured("freeing");
  return free_from(state().pinned, at);
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  not_captured("pinning");
  touch();
  const std::lock_guard lock(state().mutex);
  state().pinned[reinterpret_cast<std::uintptr_t>(at)] = {bytes, current};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* at) {
  not_captured("unpinning");
  touch();
  const std::lock_guard lock(state().mutex);
  if (state().pinned.erase(reinterpret_cast<std::uintptr_t>(at)) == 0)
    refuse("memory to unpin that was not pinned");
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** there, void* here, unsigned) {
  touch();
  if (!is_pinned(here, 1)) return failed(cudaErrorInvalidValue);
  *there = here;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* at) {
  *attributes = {};
  attributes->type = on_device(at, 1)   ? cudaMemoryTypeDevice
                     : is_pinned(at, 1) ? cudaMemoryTypeHost
                                        : cudaMemoryTypeUnregistered;
  attributes->devicePointer = const_cast<void*>(at);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy(to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  not_captured("a copy that is waited for");
  copy(to, from, bytes, kind, nullptr);
  stream_of(nullptr).finish();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  if (!on_device(at, bytes)) refuse("memory to fill that is no device's");
  enqueue(stream, {.kind = Deed::Kind::fill, .to = at, .bytes = bytes, .value = value});
  return cudaSuccess;
}
cudaError_t cudaMemset(void* at, int value, std::size_t bytes) {
  not_captured("filling that is waited for");
  return cudaMemsetAsync(at, value, bytes, nullptr);
}

// Streams and events. ----------------------------------------------------------------------------

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
  stream.finish();
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
  stream_of(stream).finish();
  return outcome();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  not_captured("a question about a stream");
  touch();
  if (broken()) return outcome();
  return stream_of(stream).idle() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  not_captured("a new event");
  touch();
  auto* made = new Event;
  made->device = current;
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
  if (capture.broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (capture.has(of)) {
    event.graph = capture.graph;
    event.recorded = capture.behind[&of];
    return outcome();
  }
  not_captured("an event of a stream that is not captured");
  enqueue(stream, {.kind = Deed::Kind::mark, .event = &event, .mark = ++event.marked});
  return outcome();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  static const bool refused = std::getenv("CUDA_STAND_IN_NO_BRANCHES") != nullptr;
  capture.broken = capture.broken || (refused && capture.graph != nullptr);
  if (capture.broken) return failed(cudaErrorStreamCaptureUnsupported);
  const Event& event = event_of(handle);
  if (capture.graph == nullptr || event.graph != capture.graph)
    refuse("a wait for an event of no capture, or of another (which it does not imitate)");
  auto& behind = capture.behind[&stream_of(stream)];
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

// Graphs. ----------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  not_captured("a second capture");
  touch();
  if (mode != cudaStreamCaptureModeThreadLocal) refuse("a capture that minds other threads");
  if (handle == nullptr) refuse("a capture of the default stream");
  capture.origin = &stream_of(handle);
  capture.graph = new Graph;
  capture.graph->device = capture.origin->device;
  capture.behind = {{capture.origin, {}}};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (capture.graph == nullptr || capture.origin != &stream_of(handle))
    refuse("an end of no capture");
  if (capture.broken) {
    delete std::exchange(capture, {}).graph;
    *graph = nullptr;
    return failed(cudaErrorStreamCaptureInvalidated);
  }
  if (!capture.graph->ends_in(capture.behind[capture.origin]))
    refuse("a capture with a stream that nobody waits for");
  *graph = reinterpret_cast<cudaGraph_t>(std::exchange(capture, {}).graph);
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
  made->deeds = recorded.deeds;
  made->follow = recorded.follow;
  made->turn();
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
  if (graph->device != current) refuse("a graph to destroy with another device current");
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
