// Generated kernels, compiled by NVRTC.
#include <arenite/error.hpp>

#include <cuda_runtime.h>
#include <nvrtc.h>

#include "codelets/cuda/generated.hpp"
#include "codelets/cuda/grid.hpp"
#include "src/base/atomic_file.hpp"
#include "src/base/private_folder.hpp"
#include "src/base/sha256.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace arenite::codelets::cuda {
namespace {

/// The oldest GPU that all of this machine's are like, as far as kernels here differ.
int architecture() {
  static const int common = [] {
    int least = 9, count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    for (int device = 0; device < count; ++device) {
      int major = 0;
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
      least = std::min(least, major);
    }
    return least >= 9 ? 90 : 80;
  }();
  return common;
}

/// Products and sums are rounded one by one, as on the CPU.
std::array<std::string, 3> options() {
  return {"--gpu-architecture=compute_" + std::to_string(architecture()), "--std=c++20",
          "--fmad=false"};
}

[[noreturn]] void refuse(const std::string& found) {
  fail({.found = "NVRTC: " + found,
        .expected = "a kernel that is made while a program is built to compile"});
}

void check(nvrtcResult result) {
  if (result != NVRTC_SUCCESS) refuse(nvrtcGetErrorString(result));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    check(nvrtcCreateProgram(&program_, source.c_str(), "each.cu", 0, nullptr, nullptr));
  }
  ~Program() { nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string ptx() {
    const auto given = options();
    std::array<const char*, given.size()> texts{};
    std::ranges::transform(given, texts.begin(), &std::string::c_str);
    if (nvrtcCompileProgram(program_, texts.size(), texts.data()) != NVRTC_SUCCESS)
      refuse(text(nvrtcGetProgramLogSize, nvrtcGetProgramLog));
    return text(nvrtcGetPTXSize, nvrtcGetPTX);
  }

 private:
  /// What NVRTC gives with a zero behind it.
  template <class Size, class Get>
  std::string text(Size size, Get get) {
    std::size_t bytes = 0;
    check(size(program_, &bytes));
    std::string made(bytes, '\0');
    check(get(program_, made.data()));
    if (!made.empty()) made.pop_back();
    return made;
  }

  nvrtcProgram program_ = nullptr;
};

std::string hash_of(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.hex();
}

/// A file of the cache: its first line tells what is damaged from what is not.
std::string first_line(std::string_view ptx) { return "// " + hash_of(ptx) + "\n"; }

std::optional<std::string> cached(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find('\n') + 1;  // 0 where there is none
  std::string ptx = text.substr(begin);
  if (begin == 0 || text.substr(0, begin) != first_line(ptx)) return std::nullopt;
  return ptx;
}

std::string version() {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string ptx_of(const std::string& source) {
  std::string key = version();
  for (const std::string& option : options()) key += " " + option;
  const std::string folder = "kernels", name = hash_of(key + "\n" + source) + ".ptx";
  if (const auto own = own_cache(folder)) {
    if (auto known = cached(*own / name)) return *known;
  }
  const auto target = writable_cache(folder);
  if (target) {
    if (auto known = cached(*target / name)) return *known;
  }
  const std::string ptx = Program(source).ptx();
  if (!target) return ptx;
  try {
    write_file(*target / name, first_line(ptx) + ptx);
  } catch (const Error&) {
    // A full disk costs the next process some milliseconds.
  }
  return ptx;
}

/// Loaded on every device that launches it, and never unloaded: recordings hold it.
const void* load(const std::string& ptx) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  cudaError_t error =
      cudaLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error == cudaSuccess) error = cudaLibraryGetKernel(&kernel, library, "each");
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    fail({.found = std::string("CUDA: ") + cudaGetErrorString(error),
          .expected = "a driver that takes what NVRTC " + version() + " made",
          .hint = "drivers as new as that CUDA do"});
  }
  return static_cast<const void*>(kernel);
}

}  // namespace

Each::Each(const std::string& source) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, const void*>;
  const std::lock_guard alone(mutex);
  const void*& kernel = (*known)[source];
  if (kernel == nullptr) kernel = load(ptx_of(source));
  kernel_ = kernel;
  waits_ = architecture() >= 90;
}

void Each::launch(const KernelCall& call, std::int64_t count,
                  std::span<void* const> parameters) const noexcept {
  if (count == 0) return;
  Guard guard(call);
  int narrow = static_cast<int>(count);
  std::array<void*, most_parameters + 3> all{};
  void** next = std::ranges::copy(parameters, all.data()).out;
  *next++ = is_narrow(count) ? static_cast<void*>(&narrow) : static_cast<void*>(&count);
  *next++ = &guard.status;
  *next = &guard.failed;
  const arenite::cuda::EarlyLaunch as(static_cast<cudaStream_t>(call.stream), blocks_of_each(count),
                                      threads_of_each, waits_);
  const cudaError_t error = cudaLaunchKernelExC(&as.config, kernel_, all.data());
  if (error != cudaSuccess)
    note_failure("launch of a generated GPU kernel", error, cudaGetErrorString(error));
}

}  // namespace arenite::codelets::cuda
