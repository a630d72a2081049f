// Every float32 kernel that a GPU has for the ops of networks' training steps, by itself: what each
// takes, and which one programs are given. For thresholds that were set where no GPU was.
//
// A kernel's launches are recorded a number of times in a row, as programs record them, and the
// recording is launched; a row is the median over launches, a kernel's run alone with warm caches.
#include <arenite/error.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>

#include <cuda_runtime_api.h>
#include <spdlog/fmt/fmt.h>
#include <CLI/CLI.hpp>

#include "codelets/cuda/libraries.hpp"
#include "src/base/atomic_file.hpp"
#include "src/train/step_on_gpu.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace arenite;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail({.found = std::string(what) + ": " + cudaGetErrorString(error), .expected = "success"});
}

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
    std::vector<float> values(static_cast<std::size_t>(floats));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 24) - 120) / 256;
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }

 private:
  void* data_ = nullptr;
};

/// An op's operands, results and scratch on the device.
class Place {
 public:
  Place(const graph::Graph& graph, const graph::Op& op, std::int64_t scratch)
      : workspace_(scratch), words_(2 * static_cast<std::int64_t>(sizeof(runtime::StatusWord))) {
    for (graph::ValueId id : op.operands) operands_.push_back(id ? make(graph[id]) : nullptr);
    for (graph::ValueId id : op.results) results_.push_back(make(graph[id]));
  }

  runtime::KernelCall call(const runtime::PreparedKernel& kernel, cudaStream_t stream) const {
    auto* const words = static_cast<runtime::StatusWord*>(words_.data());
    return {.operands = operands_.data(),
            .results = results_.data(),
            .workspace = workspace_.data(),
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
  Buffer workspace_, words_;
};

/// Microseconds of one run.
double measure(const runtime::PreparedKernel& kernel, const Place& place) {
  constexpr int runs = 20, launches = 9;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t recording = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const runtime::KernelCall call = place.call(kernel, stream);
  kernel.run(call);  // loads it
  check(cudaStreamSynchronize(stream), "first run");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of a capture");
  for (int i = 0; i < runs; ++i) kernel.run(call);
  check(cudaStreamEndCapture(stream, &graph), "end of a capture");
  check(cudaGraphInstantiate(&recording, graph, 0), "recording");
  std::vector<float> times;
  for (int i = 0; i <= launches; ++i) {  // one more, to warm up
    check(cudaEventRecord(begin, stream), "event");
    check(cudaGraphLaunch(recording, stream), "launch");
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "runs");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "time");
    if (i > 0) times.push_back(milliseconds);
  }
  if (const std::string failed = codelets::cuda::take_failure(); !failed.empty())
    fail({.found = failed, .expected = "a kernel that runs"});
  std::nth_element(times.begin(), times.begin() + launches / 2, times.end());
  cudaGraphExecDestroy(recording);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  return static_cast<double>(times[launches / 2]) * 1000 / runs;
}

struct Row {
  std::string network;
  std::int64_t batch = 0;
  std::string op, shapes, kernel;
  double microseconds = 0;
  bool chosen = false;
  std::string error;
};

std::string shapes_of(const graph::OpView& op) {
  std::string text;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (op.has_operand(i)) text += (text.empty() ? "" : " ") + to_string(op.operand(i).shape);
  }
  return text;
}

/// All kernels of the ops of a step, each distinct op once.
void compare(const std::string& network, std::int64_t batch, std::vector<Row>& rows) {
  const graph::Graph graph = train::step_on_gpu(network, batch).spec.graph;
  std::set<std::string> seen;
  for (graph::OpId id : graph[graph::Graph::body].ops) {
    const graph::Op& op = graph[id];
    const graph::OpView view(graph, op);
    Row row{.network = network,
            .batch = batch,
            .op = std::string(op.name()),
            .shapes = shapes_of(view),
            .kernel = {},
            .error = {}};
    if (op.kernel.empty() || !seen.insert(row.op + row.shapes).second) continue;
    for (const runtime::Kernel& kernel : kernels().find(op.name())) {
      if (kernel.device != DeviceKind::cuda || kernel.compute != runtime::Compute::float32 ||
          (kernel.supports && !kernel.supports(view)))
        continue;
      row.kernel = kernel.name;
      row.chosen = kernel.name == op.kernel;
      row.error.clear();
      row.microseconds = 0;
      try {
        const Place place(graph, op, kernel.workspace ? kernel.workspace(view) : 0);
        row.microseconds = measure(kernel.prepare(view), place);
      } catch (const Error& error) {
        row.error = error.what();
      }
      fmt::print("{:8} {:5}  {:36} {:9}{} {:>10}  {}\n", network, batch, row.op, row.kernel,
                 row.chosen ? '*' : ' ',
                 row.error.empty() ? fmt::format("{:.2f}", row.microseconds) : "failed",
                 row.error.empty() ? row.shapes : row.error);
      std::cout << std::flush;
      rows.push_back(row);
    }
  }
}

int run(int argc, char** argv) {
  std::vector<std::string> networks{"cnn1", "lenet5", "cnn2", "vgg-small"};
  std::vector<std::int64_t> batches{64, 256, 1024};
  std::string path;
  CLI::App app("Times each GPU kernel of networks' training steps by itself.");
  app.add_option("--networks", networks, "whose steps")->delimiter(',');
  app.add_option("--batches", batches, "of so many samples")->delimiter(',');
  app.add_option("--json", path, "a file to write the rows to");
  CLI11_PARSE(app, argc, argv);
  if (const runtime::CudaSupport support = runtime::cuda_support(); support.devices.empty()) {
    std::cerr << "gpu_kernels: no device: " << support.reason << '\n';
    return 77;
  }
  check(cudaSetDevice(0), "cudaSetDevice");
  codelets::cuda::warm_up_libraries();
  fmt::print("{:8} {:>5}  {:36} {:10} {:>10}  {}\n", "network", "batch", "op", "kernel", "µs",
             "operands (*: what programs are given)");
  std::optional<AtomicFile> file;
  if (!path.empty()) file.emplace(path);
  std::vector<Row> rows;
  for (const std::string& network : networks) {
    for (const std::int64_t batch : batches) compare(network, batch, rows);
  }
  if (!file) return 0;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    all.push_back({{"network", row.network},
                   {"batch", row.batch},
                   {"op", row.op},
                   {"operands", row.shapes},
                   {"kernel", row.kernel},
                   {"chosen", row.chosen}});
    if (row.error.empty()) {
      all.back()["microseconds"] = row.microseconds;
    } else {
      all.back()["error"] = row.error;
    }
  }
  file->write(all.dump(1) + "\n");
  file->commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "gpu_kernels: " << error.what() << '\n';
    return 1;
  }
}
