// GPUs that are threads of the host, one for each stream: for tests of what programs do with
// devices on machines without one. Kernels are those whose grids are loops. What CUDA would not
// forgive, or only on some machines, ends the process here.
#pragma once

#include <arenite/error.hpp>

#include "src/runtime/device.hpp"
#include "src/runtime/simulated_stream.hpp"
#include "src/runtime/starpu.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace arenite::runtime::testing {

class SimulatedDevice final : public Device {
  struct Mark final : Event {
    std::atomic<bool> reached{true};
    std::vector<std::size_t> recorded;  ///< in a recording: the deeds that it stands behind
  };

  /// What a stream does, as plain data: nothing in a step allocates.
  struct Deed {
    enum class Kind : std::uint8_t { call, fill, hand_on, mark, all_of } kind = Kind::call;
    KernelFunction run = nullptr;
    KernelCall call;
    void* into = nullptr;
    const StatusWord* from = nullptr;
    StatusWord* told = nullptr;
    std::size_t bytes = 0;
    std::byte value{};
    Mark* mark = nullptr;
    const Work* work = nullptr;
  };
  struct Recording final : Work {
    RecordedDeeds<Deed> deeds;
  };

  static void copy(std::uint64_t word, StatusWord& into) {
    into.clear();
    if (word != StatusWord::ok) into.report(StatusWord::op_of(word), StatusWord::code_of(word));
  }
  static void perform(const Deed& deed) {
    switch (deed.kind) {
      case Deed::Kind::call:
        deed.run(deed.call);
        break;
      case Deed::Kind::fill:
        std::memset(deed.into, std::to_integer<int>(deed.value), deed.bytes);
        break;
      case Deed::Kind::hand_on: {
        const std::uint64_t word = deed.from->load();
        auto& into = *static_cast<StatusWord*>(deed.into);
        if (into.load() == StatusWord::ok) copy(word, into);
        if (deed.told != nullptr) copy(word, *deed.told);
        break;
      }
      case Deed::Kind::mark:
        deed.mark->reached.store(true, std::memory_order_release);
        break;
      case Deed::Kind::all_of:
        static_cast<const Recording&>(*deed.work).deeds.perform(perform);
        break;
    }
  }

  struct Worker {
    SimulatedStream<Deed, perform> stream;
    Recording* recording = nullptr;
    std::vector<std::size_t> behind;  ///< deeds of the recording that the next one follows
  };

 public:
  SimulatedDevice(const CudaDevice& device, int worker, std::int64_t capacity)
      : name_(device.name), worker_(worker) {
    space_ = {.device = DeviceKind::cuda,
              .index = device.index,
              .memory = MemoryKind::device,
              .capacity = capacity > 0 ? capacity : device.memory};
    for (Worker& each : streams_) each.stream.begin();
  }
  ~SimulatedDevice() override { all_in_use() -= bytes_; }
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  /// How many more deeds all of them do before they fail; below 0: they do not.
  static std::atomic<long>& deeds_left() {
    static std::atomic<long> left{-1};
    return left;
  }
  /// The calling thread's device, by its index; -1: it has made none current.
  static int& current() {
    thread_local int index = -1;
    return index;
  }
  /// Bytes that programs hold on all of them.
  static std::atomic<std::int64_t>& all_in_use() {
    static std::atomic<std::int64_t> bytes{0};
    return bytes;
  }

  const Space& space() const noexcept override { return space_; }
  std::string description() const override { return name_; }
  int worker() const noexcept override { return worker_; }
  bool has_cuda_worker() const noexcept override { return false; }

  std::byte* allocate(std::int64_t bytes) override {
    expect_no_capture("an allocation");
    if (bytes_ + bytes > space_.capacity)
      throw Failure({.found = "out of memory", .expected = std::to_string(bytes) + " bytes"});
    auto* made = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{256}));
    std::memset(made, 0, static_cast<std::size_t>(bytes));
    sizes_[made] = bytes;
    bytes_ += bytes;
    all_in_use() += bytes;
    return made;
  }
  void release(std::byte* bytes) noexcept override {
    expect_no_capture("a release");
    const auto known = sizes_.find(bytes);
    bytes_ -= known->second;
    all_in_use() -= known->second;
    sizes_.erase(known);
    ::operator delete (bytes, std::align_val_t{256});
  }
  std::int64_t in_use() const noexcept override { return bytes_; }
  void write(void* there, const void* here, std::size_t bytes) override {
    expect_no_capture("a copy that is waited for");
    std::memcpy(there, here, bytes);
  }
  void clear(void* there, std::size_t bytes) override {
    expect_no_capture("filling that is waited for");
    std::memset(there, 0, bytes);
  }
  void read(void* here, const void* there, std::size_t bytes) override {
    expect_no_capture("a copy that is waited for");
    std::memcpy(here, there, bytes);
  }
  std::unique_ptr<Event> make_event() override {
    expect_no_capture("a new event");
    return std::make_unique<Mark>();
  }
  void* address_there(void* here) override {
    expect_no_capture("a question about host memory");
    return here;
  }
  void try_out(const std::function<void(Stream)>& enqueue) override {
    Recording tried;
    collect(tried, enqueue);
    for (const Deed& deed : tried.deeds.deeds) {
      push(deed, &streams_[0]);
      if (deed.kind == Deed::Kind::call) loaded_.insert(deed.run);
    }
    streams_[0].stream.finish();
    if (failed()) throw Failure({.found = failure(), .expected = "a task that it can do"});
  }
  std::unique_ptr<Work> record(const std::function<void(Stream)>& enqueue) override {
    auto work = std::make_unique<Recording>();
    collect(*work, enqueue);
    for (const Deed& deed : work->deeds.deeds) {
      // CUDA may have to load its code, and libraries to make handles: no capture allows that.
      if (deed.kind == Deed::Kind::call && !loaded_.contains(deed.run)) {
        throw Failure({.found = "a kernel in a recording that never ran",
                       .expected = "one that was tried out"});
      }
    }
    work->deeds.turn();
    return work;
  }
  double seconds(const Work& work) override {
    launch_now(work);
    return 0;  // so that branches are kept
  }
  Stream branch(std::size_t number) noexcept override { return &branches_[number - 1]; }
  void follow(Stream stream, const Event& event) noexcept override {
    auto& mine = *static_cast<Worker*>(stream);
    for (const std::size_t deed : static_cast<const Mark&>(event).recorded)
      mine.behind.push_back(deed);
  }
  void make_current() override { current() = space_.index; }

  Stream stream(Queue queue) noexcept override {
    return &streams_[static_cast<std::size_t>(queue)];
  }
  Stream task_stream() noexcept override { return stream(Queue::compute); }
  void call(KernelFunction run, const KernelCall& call) noexcept override {
    push_in_step({.kind = Deed::Kind::call, .run = run, .call = call}, call.stream);
  }
  void fill(void* there, std::byte value, std::size_t bytes, Stream stream) noexcept override {
    push_in_step({.kind = Deed::Kind::fill, .into = there, .bytes = bytes, .value = value}, stream);
  }
  void hand_on(const StatusWord* from, StatusWord* into, StatusWord* told,
               Stream stream) noexcept override {
    push_in_step({.kind = Deed::Kind::hand_on, .into = into, .from = from, .told = told}, stream);
  }
  void launch(const Work& work, Stream stream) noexcept override {
    push_in_step({.kind = Deed::Kind::all_of, .work = &work}, stream);
  }
  void mark(Event& event, Stream stream) noexcept override {
    auto& mark = static_cast<Mark&>(event);
    if (capturing()) {
      mark.recorded = static_cast<Worker*>(stream)->behind;
      return;
    }
    mark.reached.store(false);
    push_in_step({.kind = Deed::Kind::mark, .mark = &mark}, stream);
  }
  bool reached(const Event& event) noexcept override {
    expect_worker();
    return failed() || static_cast<const Mark&>(event).reached.load(std::memory_order_acquire);
  }
  void finish(Stream stream) noexcept override {
    expect_no_capture("waiting");
    static_cast<Worker*>(stream)->stream.finish();
  }
  bool failed() const noexcept override { return deeds_left() == 0; }
  std::string failure() const override { return failed() ? name_ + ": out of order" : ""; }

 private:
  void collect(Recording& work, const std::function<void(Stream)>& enqueue) {
    expect_no_capture("a second capture");
    const auto set = [&](Recording* into) {
      const auto begin = [&](Worker& worker) { worker.recording = into, worker.behind.clear(); };
      begin(streams_[0]);
      std::ranges::for_each(branches_, begin);
      capturing() = into != nullptr;
    };
    set(&work);
    enqueue(&streams_[0]);
    const std::vector<std::size_t> end = streams_[0].behind;
    set(nullptr);
    expect(work.deeds.end_in(end), "a recording with a branch that nobody waits for");
  }

  /// The calling thread is. Other threads may do as they like meanwhile.
  static bool& capturing() {
    thread_local bool yes = false;
    return yes;
  }
  static void expect(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "a simulated GPU was asked for %s\n", what);
    std::abort();
  }
  static void expect_no_capture(const char* what) {
    if (capturing()) std::fprintf(stderr, "within a capture: ");
    expect(!capturing(), what);
  }
  /// Of other threads nobody knows that the device is their current one.
  void expect_worker() const {
    expect(starpu_worker_get_id() == worker_, "a step's work by another thread than its worker's");
  }

  void push_in_step(const Deed& deed, Stream stream) {
    if (!capturing()) expect_worker();
    push(deed, stream);
  }

  void launch_now(const Work& work) {
    push({.kind = Deed::Kind::all_of, .work = &work}, &streams_[0]);
    streams_[0].stream.finish();
    if (failed()) throw Failure({.found = failure(), .expected = "a task that it can do"});
  }

  static void push(const Deed& deed, Stream stream) {
    auto& mine = *static_cast<Worker*>(stream);
    // As with CUDA, what is asked of a device that has failed is left undone.
    if (mine.recording == nullptr && deeds_left() >= 0 &&
        (deeds_left() == 0 || --deeds_left() == 0))
      return;
    if (mine.recording != nullptr) {
      mine.recording->deeds.add(deed, mine.behind);
    } else {
      mine.stream.push(deed);
    }
  }

  const std::string name_;
  const int worker_;
  Space space_;
  std::map<std::byte*, std::int64_t> sizes_;
  std::atomic<std::int64_t> bytes_{0};
  std::set<KernelFunction> loaded_;
  std::array<Worker, queue_count> streams_;
  std::array<Worker, most_branches - 1> branches_;  // only recorded
};

/// As long as it is there, sessions find so many simulated GPUs and no others. Make it before the
/// first session, and let it end behind the last.
class SimulatedGpus final : public DeviceDriver {
 public:
  explicit SimulatedGpus(int count, std::int64_t memory = std::int64_t{1} << 30)
      : count_(count), memory_(memory) {
    set_device_driver(this);
  }
  ~SimulatedGpus() override { set_device_driver(nullptr); }
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;

  CudaSupport support() override {
    CudaSupport found{.built = true, .devices = {}, .reason = {}};
    for (int i = 0; i < count_; ++i)
      found.devices.push_back({i, "simulated GPU " + std::to_string(i), memory_});
    if (count_ == 0) found.reason = "none is simulated";
    return found;
  }
  bool has_cuda_workers() const noexcept override { return false; }
  std::unique_ptr<Device> open(const CudaDevice& device, int worker,
                               std::int64_t capacity) override {
    return std::make_unique<SimulatedDevice>(device, worker, capacity);
  }

 private:
  int count_;
  std::int64_t memory_;
};

}  // namespace arenite::runtime::testing
