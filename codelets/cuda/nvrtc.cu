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
#include <tuple>

namespace arenite::codelets::cuda {
namespace {

/// What a kernel is compiled to: PTX, which the driver makes a binary of, or the binary, which
/// drivers older than the compiler take as well.
enum class Form : std::uint8_t { ptx, cubin };

struct Capability {
  int major = 9, minor = 0;
};

/// The oldest of this machine's GPUs, and whether a binary for it runs on all.
struct Devices {
  Capability oldest;
  bool are_alike = true;

  static const Devices& all() {
    static const Devices known;
    return known;
  }

 private:
  Devices() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    for (int device = 0; device < count; ++device) {
      Capability one;
      cudaDeviceGetAttribute(&one.major, cudaDevAttrComputeCapabilityMajor, device);
      cudaDeviceGetAttribute(&one.minor, cudaDevAttrComputeCapabilityMinor, device);
      are_alike = are_alike && (device == 0 || one.major == oldest.major);
      if (device == 0 || std::tie(one.major, one.minor) < std::tie(oldest.major, oldest.minor))
        oldest = one;
    }
  }
};

/// As far as kernels here differ.
bool launches_early() { return Devices::all().oldest.major >= 9; }

/// Products and sums are rounded one by one, as on the CPU.
std::array<std::string, 3> options(Form form) {
  const Capability& oldest = Devices::all().oldest;
  const std::string architecture = form == Form::cubin
                                       ? "sm_" + std::to_string(oldest.major * 10 + oldest.minor)
                                       : std::string("compute_") + (launches_early() ? "90" : "80");
  return {"--gpu-architecture=" + architecture, "--std=c++20", "--fmad=false"};
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

  std::string compiled(Form form) {
    const auto given = options(form);
    std::array<const char*, given.size()> texts{};
    std::ranges::transform(given, texts.begin(), &std::string::c_str);
    if (nvrtcCompileProgram(program_, texts.size(), texts.data()) != NVRTC_SUCCESS)
      refuse(result(nvrtcGetProgramLogSize, nvrtcGetProgramLog));
    return form == Form::ptx ? result(nvrtcGetPTXSize, nvrtcGetPTX)
                             : result(nvrtcGetCUBINSize, nvrtcGetCUBIN);
  }

 private:
  template <class Size, class Get>
  std::string result(Size size, Get get) {
    std::size_t bytes = 0;
    check(size(program_, &bytes));
    std::string made(bytes, '\0');
    check(get(program_, made.data()));
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
std::string first_line(std::string_view code) { return "// " + hash_of(code) + "\n"; }

std::optional<std::string> cached(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find('\n') + 1;  // 0 where there is none
  std::string code = text.substr(begin);
  if (begin == 0 || text.substr(0, begin) != first_line(code)) return std::nullopt;
  return code;
}

std::string version() {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string code_of(const std::string& source, Form form) {
  std::string key = version();
  for (const std::string& option : options(form)) key += " " + option;
  const std::string folder = "kernels",
                    name = hash_of(key + "\n" + source) + (form == Form::ptx ? ".ptx" : ".cubin");
  if (const auto own = own_cache(folder)) {
    if (auto known = cached(*own / name)) return *known;
  }
  const auto target = writable_cache(folder);
  if (target) {
    if (auto known = cached(*target / name)) return *known;
  }
  const std::string code = Program(source).compiled(form);
  if (!target) return code;
  try {
    write_file(*target / name, first_line(code) + code);
  } catch (const Error&) {
    // A full disk costs the next process some milliseconds.
  }
  return code;
}

/// Loaded on every device that launches it, and never unloaded: recordings hold it.
const void* load(const std::string& source) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  const auto load_it = [&](Form form) {
    return cudaLibraryLoadData(&library, code_of(source, form).c_str(), nullptr, nullptr, 0,
                               nullptr, nullptr, 0);
  };
  cudaError_t error = load_it(Form::ptx);
  if (error == cudaErrorUnsupportedPtxVersion && Devices::all().are_alike) {
    static_cast<void>(cudaGetLastError());
    error = load_it(Form::cubin);
  }
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
  if (kernel == nullptr) kernel = load(source);
  kernel_ = kernel;
  waits_ = launches_early();
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
