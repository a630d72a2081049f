// How long a GPU's kernels were busy: contestants open this library by its name, ours and others.
//
//   arenite_kernel_trace_start();   // 0, or what went wrong
//   …                               // steps, and a wait for the device
//   arenite_kernel_trace_stop(&busy_seconds, &kernels);
//
// It is CUPTI's activity records: a kernel each, whether it was launched alone or in a recorded
// graph. Those that overlap count once. Recording slows launches down, not kernels. One thread.
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace {

/// Of the toolkit at hand: the records' layout is that of its headers. Found by the loader's paths.
template <class F>
F* find(const char* name) {
#define ARENITE_TEXT(x) #x
#define ARENITE_TEXT_OF(x) ARENITE_TEXT(x)
  static void* library = dlopen("libcupti.so." ARENITE_TEXT_OF(ARENITE_CUPTI_MAJOR), RTLD_NOW);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

struct Cupti {
  decltype(cuptiActivityEnable)* enable =
      find<decltype(cuptiActivityEnable)>("cuptiActivityEnable");
  decltype(cuptiActivityDisable)* disable =
      find<decltype(cuptiActivityDisable)>("cuptiActivityDisable");
  decltype(cuptiActivityRegisterCallbacks)* callbacks =
      find<decltype(cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks");
  decltype(cuptiActivityGetNextRecord)* next_record =
      find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  decltype(cuptiActivityGetNumDroppedRecords)* dropped =
      find<decltype(cuptiActivityGetNumDroppedRecords)>("cuptiActivityGetNumDroppedRecords");
  decltype(cuptiActivityFlushAll)* flush =
      find<decltype(cuptiActivityFlushAll)>("cuptiActivityFlushAll");

  bool whole() const { return enable && disable && callbacks && next_record && dropped && flush; }
};

const Cupti& cupti() {
  static const Cupti found;
  return found;
}

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
#else
using KernelRecord = CUpti_ActivityKernel9;  // of CUDA 12
#endif

constexpr std::size_t buffer_bytes = 1 << 20, alignment = 8;

struct Records {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kernels;  // nanoseconds: from, to
  std::size_t dropped = 0;
};
Records& records() {
  static Records instance;
  return instance;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, buffer_bytes));
  *size = *buffer ? buffer_bytes : 0;
  *most = 0;  // as many as there is room for
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t /*size*/, std::size_t valid) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (cupti().next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
        record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
      continue;
    const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
    if (kernel->end > kernel->start) {
      all.kernels.emplace_back(kernel->start, kernel->end);
    } else {
      ++all.dropped;  // CUPTI could not take its times
    }
  }
  std::size_t lost = 0;
  if (cupti().dropped(context, stream, &lost) == CUPTI_SUCCESS) all.dropped += lost;
  std::free(buffer);
}

constexpr int no_library = -1, records_lost = -2;

}  // namespace

extern "C" {

int arenite_kernel_trace_start() {
  const Cupti& c = cupti();
  if (!c.whole()) return no_library;
  static const CUptiResult registered = c.callbacks(give_buffer, take_buffer);
  if (registered != CUPTI_SUCCESS) return registered;
  {
    const std::lock_guard lock(records().mutex);
    records().kernels.clear();
    records().dropped = 0;
  }
  return c.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

int arenite_kernel_trace_stop(double* busy_seconds, long* kernels) {
  const Cupti& c = cupti();
  if (!c.whole()) return no_library;
  if (const CUptiResult error = c.flush(0); error != CUPTI_SUCCESS) return error;
  c.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (const CUptiResult error = c.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); error != CUPTI_SUCCESS)
    return error;
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  std::sort(all.kernels.begin(), all.kernels.end());
  std::uint64_t busy = 0, until = 0;
  for (const auto& [from, to] : all.kernels) {
    if (to <= until) continue;
    busy += to - std::max(from, until);
    until = to;
  }
  *busy_seconds = static_cast<double>(busy) * 1e-9;
  *kernels = static_cast<long>(all.kernels.size());
  return all.dropped > 0 ? records_lost : 0;
}
}
