#include "src/cli/doctor/checks.hpp"

#include <arenite/error.hpp>
#include <arenite/runtime/block.hpp>
#include <arenite/runtime/devices.hpp>

#include "src/base/installed.hpp"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <fstream>

namespace arenite::cli::doctor {
namespace {

/// Of NVIDIA's kernel module: "535.54.03"; empty where it is not loaded.
std::string driver_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  file >> version;
  return version;
}

/// Whether something of NVIDIA's is here, whatever this build makes of it.
bool sees_hardware() {
  std::error_code error;
  return !driver_version().empty() || std::filesystem::exists("/dev/nvidiactl", error);
}

void without_device(Finding& finding, const runtime::CudaSupport& support) {
  finding.says = "none: " + support.reason;
  if (support.built) {
    finding.note(support.reason,
                 sees_hardware()
                     ? "does nvidia-smi list it? is CUDA_VISIBLE_DEVICES right?"
                     : "load NVIDIA's driver; in a container, give it the GPU (--gpus all)");
  } else if (sees_hardware()) {
    finding.note(
        "NVIDIA's driver is here, but this build has no CUDA",
        "build one, in Arenite's source: scripts/build-starpu, then scripts/build cuda; see " +
            page("docs/gpu.md"));
  }
}

/// Whether the host's memory is registered with CUDA, and a graph gives the right bits.
void try_first(Finding& finding) {
  runtime::Session session({.workers = 1, .device = "cuda"});
  runtime::Block block("doctor", std::int64_t{1} << 20);
  block.data();
  finding.facts["host_memory"] = block.pinned();
  finding.details.push_back("the host's memory: " + block.pinned());
  if (block.pinned() != "cuda") {
    finding.note("the host's memory is not registered with CUDA, so that copies are slower",
                 "build StarPU with CUDA, in Arenite's source: scripts/build-starpu");
  }
  const std::string wrong = run_small_graph(session);
  finding.facts["right"] = wrong.empty();
  if (wrong.empty()) {
    finding.details.emplace_back("a graph ran on the first: right to the bit");
  } else {
    finding.fails("a graph on the first: " + wrong,
                  "find out which kernels are wrong, in Arenite's source: scripts/gpu-check; see " +
                      page("docs/gpu-check.md"));
  }
}

}  // namespace

Finding check_gpu() {
  Finding finding;
  const runtime::CudaSupport support = runtime::cuda_support();
  const std::string driver = driver_version();
  Json devices = Json::list();
  for (const runtime::CudaDevice& device : support.devices) {
    finding.says += fmt::format("{}{} {}, {}", finding.says.empty() ? "" : "; ", device.index,
                                device.name, bytes_text(device.memory));
    devices.push_back({{"index", device.index}, {"name", device.name}, {"memory", device.memory}});
  }
  finding.facts = {{"built_with_cuda", support.built},
                   {"driver", nullptr},
                   {"devices", std::move(devices)},
                   {"reason", nullptr}};
  if (!driver.empty()) {
    finding.facts["driver"] = driver;
    finding.details.push_back("driver " + driver);
  }
  if (support.devices.empty()) {
    finding.facts["reason"] = support.reason;
    without_device(finding, support);
    return finding;
  }
  try {
    try_first(finding);
  } catch (const Error& error) {
    finding.fails(error.text());
  }
  return finding;
}

}  // namespace arenite::cli::doctor
