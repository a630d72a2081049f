// Every float32 kernel that a GPU has for the ops of networks' training steps, by itself: what each
// takes, and which one programs are given. With --choose it writes which one they should be given
// (`arenite train --kernels`), for what programs take by themselves was set where no GPU was.
//
// A kernel's launches are recorded a number of times in a row, as programs record them, and the
// recording is launched; a row is the median over launches, a kernel's run alone with warm caches.
#include <arenite/error.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>
#include <arenite/runtime/kernel_choices.hpp>

#include <cuda_runtime_api.h>
#include <spdlog/fmt/fmt.h>

#include "codelets/cuda/libraries.hpp"
#include "src/base/atomic_file.hpp"
#include "src/base/json.hpp"
#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"
#include "src/runtime/environment.hpp"
#include "src/train/step_on_gpu.hpp"

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace arenite;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail({.found = std::string(what) + ": " + cudaGetErrorString(error), .expected = "success"});
}

/// Like a number that was drawn.
std::uint32_t mixed(std::size_t i) { return static_cast<std::uint32_t>(i) * 2654435761u; }

/// Some of the device's memory, full of small numbers, or of codes of which none is dead.
class Buffer {
 public:
  explicit Buffer(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 256));
    check(cudaMalloc(&data_, size), "cudaMalloc");
    check(cudaMemset(data_, 0, size), "cudaMemset");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }

  /// Floats of different sizes and both signs, so that windows have winners and rows a largest.
  void fill(std::int64_t floats) {
    std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(floats, 1 << 16)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(static_cast<int>(mixed(i) >> 24) - 120) / 256;
    auto* const to = static_cast<float*>(data_);
    std::int64_t filled = static_cast<std::int64_t>(values.size());
    check(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    for (std::int64_t more = 0; filled < floats; filled += more) {  // the same again
      more = std::min(filled, floats - filled);
      check(cudaMemcpy(to + filled, to, static_cast<std::size_t>(more) * sizeof(float),
                       cudaMemcpyDeviceToDevice),
            "cudaMemcpy");
    }
  }

 private:
  void* data_ = nullptr;
};

/// An op's operands and results on the device.
class Place {
 public:
  Place(const graph::Graph& graph, const graph::Op& op)
      : words_(2 * static_cast<std::int64_t>(sizeof(runtime::StatusWord))) {
    for (graph::ValueId id : op.operands) operands_.push_back(id ? make(graph[id]) : nullptr);
    for (graph::ValueId id : op.results) results_.push_back(make(graph[id]));
    check(cudaDeviceSynchronize(), "operands");  // kernels run in a stream that does not wait
  }

  runtime::KernelCall call(const runtime::PreparedKernel& kernel, const Buffer& workspace,
                           cudaStream_t stream) const {
    auto* const words = static_cast<runtime::StatusWord*>(words_.data());
    return {.operands = operands_.data(),
            .results = results_.data(),
            .workspace = workspace.data(),
            .state = kernel.state.get(),
            .status = words,
            .stream = stream,
            .failed = words + 1};
  }

 private:
  void* make(const graph::Value& value) {
    buffers_.push_back(
        std::make_unique<Buffer>(graph::byte_size(value.type, value.shape, value.layout)));
    if (value.type == DType::float32) buffers_.back()->fill(value.shape.elements());
    return buffers_.back()->data();
  }

  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<void*> operands_, results_;
  Buffer words_;
};

/// Times what is enqueued in a stream of its own.
class Clock {
 public:
  Clock() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    check(cudaEventCreate(&begin_), "event");
    check(cudaEventCreate(&end_), "event");
  }
  ~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  cudaStream_t stream() const { return stream_; }

  template <class Enqueue>
  double milliseconds(Enqueue enqueue) const {
    check(cudaEventRecord(begin_, stream_), "event");
    enqueue();
    check(cudaEventRecord(end_, stream_), "event");
    check(cudaEventSynchronize(end_), "runs");
    float passed = 0;
    check(cudaEventElapsedTime(&passed, begin_, end_), "time");
    return static_cast<double>(passed);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// What a function enqueues, to be launched in one go.
class Graph {
 public:
  template <class Enqueue>
  Graph(cudaStream_t stream, Enqueue enqueue) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of a capture");
    enqueue();
    check(cudaStreamEndCapture(stream, &graph), "end of a capture");
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "recording");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "launch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// Microseconds of one run: of a single one where that takes many times `best`.
double measure(const runtime::PreparedKernel& kernel, const Place& place, std::int64_t scratch,
               const Clock& clock, double best) {
  constexpr int most_runs = 20, launches = 7;
  constexpr double enough = 4;  // milliseconds of a launch
  const Buffer workspace(scratch);
  check(cudaDeviceSynchronize(), "scratch");
  const runtime::KernelCall call = place.call(kernel, workspace, clock.stream());
  const auto expect_no_failure = [] {
    if (const std::string failed = codelets::cuda::take_failure(); !failed.empty())
      fail({.found = failed, .expected = "a kernel that runs"});
  };
  static_cast<void>(codelets::cuda::take_failure());  // another kernel's
  kernel.run(call);                                   // loads it
  expect_no_failure();
  const double one = clock.milliseconds([&] { kernel.run(call); });
  constexpr double many_times = 20, launch = 50;  // microseconds, which a launch by itself may take
  if (1000 * one > launch + many_times * best) return 1000 * one;
  const int runs = std::clamp(static_cast<int>(enough / std::max(one, 1e-3)), 1, most_runs);
  const Graph graph(clock.stream(), [&] {
    for (int i = 0; i < runs; ++i) kernel.run(call);
  });
  graph.launch(clock.stream());  // to warm up
  std::vector<double> times;
  for (int i = 0; i < launches; ++i)
    times.push_back(clock.milliseconds([&] { graph.launch(clock.stream()); }));
  expect_no_failure();
  std::nth_element(times.begin(), times.begin() + launches / 2, times.end());
  return times[launches / 2] * 1000 / runs;
}

/// A kernel of an op, and what it takes.
struct Row {
  std::string network;
  std::int64_t batch = 0;
  std::string op, kernel;  ///< op: as KernelChoices::describe
  double microseconds = 0;
  bool chosen = false;
  std::string error;
};

Row timed(const runtime::Kernel& kernel, const graph::OpView& op, const Place& place,
          const Clock& clock, double best) {
  Row row{.network = {},
          .op = runtime::KernelChoices::describe(op),
          .kernel = kernel.name,
          .error = {}};
  row.chosen = kernel.name == op.op().kernel;
  try {
    const std::int64_t scratch = kernel.workspace ? kernel.workspace(op) : 0;
    row.microseconds = measure(kernel.prepare(op), place, scratch, clock, best);
  } catch (const Error& error) {
    row.error = error.what();
  }
  return row;
}

/// What programs should be given: what they are, unless another kernel is faster by more than what
/// two measurements of one differ by.
const Row* best_of(const std::vector<Row>& rows) {
  constexpr double clearly = 0.97;
  const Row *best = nullptr, *given = nullptr;
  for (const Row& row : rows) {
    if (!row.error.empty()) continue;
    if (best == nullptr || row.microseconds < best->microseconds) best = &row;
    if (row.chosen) given = &row;
  }
  return given != nullptr && best->microseconds > clearly * given->microseconds ? given : best;
}

void show(const Row& row) {
  fmt::print("{:8} {:5}  {:15}{} {:>10}  {}{}\n", row.network, row.batch, row.kernel,
             row.chosen ? '*' : ' ',
             row.error.empty() ? fmt::format("{:.2f}", row.microseconds) : "failed", row.op,
             row.error.empty() ? "" : ": " + row.error);
  std::cout << std::flush;
}

/// What copies from the host's memory takes another time than it would here.
bool is_of_one_gpu(const graph::OpView& op) {
  const auto there = [&](graph::ValueId id) {
    return !id || op.graph().root_storage(id).space.device == DeviceKind::cuda;
  };
  return graph::space_of(op.graph(), op.op()).device == DeviceKind::cuda &&
         std::ranges::all_of(op.op().operands, there) &&
         std::ranges::all_of(op.op().results, there);
}

struct Measurements {
  Clock clock;  // one, for handles of libraries remember its stream
  std::vector<Row> rows;
  runtime::KernelChoices choices;
  std::set<std::string> seen;
  std::vector<std::string> cells;  ///< that are done, as "cnn2/64"
};

/// All kernels of the ops of a step, each distinct op of all steps once.
void compare(const std::string& network, std::int64_t batch, Measurements& all) {
  const graph::Graph graph = train::step_on_gpu(network, batch).spec.graph;
  const auto selector = runtime::kernel_selector(kernels());
  for (graph::OpId id : graph[graph::Graph::body].ops) {
    const graph::OpView op(graph, graph[id]);
    if (op.op().kernel.empty()) continue;  // a view
    if (!is_of_one_gpu(op)) continue;
    if (!all.seen.insert(runtime::KernelChoices::describe(op)).second) continue;
    const Place place(graph, op.op());
    std::vector<Row> rows;
    double best = std::numeric_limits<double>::infinity();
    for (const runtime::Kernel& kernel : kernels().find(op.op().name())) {
      if (kernel.device != DeviceKind::cuda || kernel.compute != runtime::Compute::float32 ||
          !selector->supports(op, kernel.name))
        continue;
      rows.push_back(timed(kernel, op, place, all.clock, best));
      if (rows.back().error.empty()) best = std::min(best, rows.back().microseconds);
      rows.back().network = network;
      rows.back().batch = batch;
      show(rows.back());
    }
    const Row* const chosen = best_of(rows);
    if (rows.size() > 1 && chosen != nullptr)
      all.choices.set(op, DeviceKind::cuda, runtime::Compute::float32, chosen->kernel);
    all.rows.insert(all.rows.end(), rows.begin(), rows.end());
  }
}

std::string as_json(const Measurements& all) {
  Json rows = Json::list();
  for (const Row& row : all.rows) {
    rows.push_back({{"network", row.network},
                    {"batch", row.batch},
                    {"op", row.op},
                    {"kernel", row.kernel},
                    {"chosen", row.chosen}});
    if (row.error.empty()) {
      rows.back()["microseconds"] = row.microseconds;
    } else {
      rows.back()["error"] = row.error;
    }
  }
  const Json document{
      {"format", "arenite gpu kernels 1"}, {"cells", all.cells}, {"rows", std::move(rows)}};
  return document.dump({.indent = 1}) + "\n";
}

/// A network, and a batch of its step.
struct Cell {
  std::string network;
  std::int64_t batch = 0;
};

/// Of "cnn2/64".
std::optional<Cell> cell_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::optional<int> batch = runtime::whole_number(text.substr(slash + 1));
  if (!batch || *batch < 1) return std::nullopt;
  return Cell{.network = text.substr(0, slash), .batch = *batch};
}

/// Of texts between commas.
template <class T>
cli::Meaning<std::vector<T>> list_of(cli::Meaning<T> one) {
  return [one](const std::string& text) -> std::optional<std::vector<T>> {
    std::vector<T> all;
    std::istringstream texts(text);
    for (std::string part; std::getline(texts, part, ',');) {
      const std::optional<T> value = part.empty() ? std::nullopt : one(part);
      if (!value) return std::nullopt;
      all.push_back(*value);
    }
    if (all.empty() || text.ends_with(',')) return std::nullopt;
    return all;
  };
}

int time_kernels(const std::vector<Cell>& cells, const std::string& json,
                 const std::string& choose) {
  if (const runtime::CudaSupport support = runtime::cuda_support(); support.devices.empty()) {
    std::cerr << "gpu_kernels: no device: " << support.reason << '\n';
    return 77;
  }
  check(cudaSetDevice(0), "cudaSetDevice");
  codelets::cuda::warm_up_libraries();
  fmt::print("{:8} {:>5}  {:16} {:>10}  {}\n", "network", "batch", "kernel", "µs",
             "op (*: what programs are given)");
  Measurements all;
  all.choices.measured_on =
      runtime::cuda_support().devices.front().name + ", " + codelets::cuda::library_versions();
  for (const auto& [network, batch] : cells) {
    compare(network, batch, all);
    all.cells.push_back(network + "/" + std::to_string(batch));
    // Each time, for whoever has no time for all.
    if (!json.empty()) write_file(json, as_json(all));
    if (!choose.empty()) all.choices.write(choose);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> networks{"cnn1", "lenet5", "cnn2", "vgg-small"};
  std::vector<std::int64_t> batches{64, 256, 1024};
  std::vector<Cell> cells;
  std::string json, choose;
  cli::Command app("gpu_kernels", "Times each GPU kernel of networks' training steps by itself");
  cli::add_option<std::vector<std::string>>(app, "--networks", networks,
                                            list_of<std::string>(cli::any_text),
                                            "networks, as cnn2,cnn1", "whose steps");
  const auto batch = [](const std::string& text) -> std::optional<std::int64_t> {
    return cli::whole_number(text, 1, 1 << 20);
  };
  cli::add_option<std::vector<std::int64_t>>(app, "--batches", batches,
                                             list_of<std::int64_t>(batch),
                                             "whole numbers, as 64,256", "of so many samples");
  cli::add_option<std::vector<Cell>>(app, "--cells", cells, list_of<Cell>(cell_of),
                                     "networks and batches, as cnn2/64,cnn1/256", "these alone");
  app.add_path("--json", json, "FILE", "a file to write the rows to, as far as there are any");
  app.add_path("--choose", choose, "FILE",
               "a file for `arenite train --kernels`: the fastest of each op");
  app.run = [&] {
    if (cells.empty()) {
      for (const std::int64_t samples : batches) {  // the smallest for all networks first
        for (const std::string& network : networks) cells.push_back({network, samples});
      }
    }
    return time_kernels(cells, json, choose);
  };
  return cli::run_command(app, argc, argv);
}
