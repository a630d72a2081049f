// Generated GPU kernels as the machine's C++ compiler makes them: their grids are loops.
#include "codelets/cuda/generated.hpp"

#include <dlfcn.h>

#include "codelets/cuda/grid.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>

namespace arenite::codelets::cuda {
namespace {

// clang-format off
/// What a GPU's compiler knows by itself; `element` runs the kernel for one index, as the only thread there is.
constexpr std::string_view before = R"(
#define __CUDACC_RTC__
#define ARENITE_THREADS_IN_TURN
#define __device__
#define __global__
struct Three { unsigned x; };
#define each(...) each_of(Three blockIdx, Three blockDim, Three threadIdx, Three gridDim, __VA_ARGS__)
extern "C" {
double cos(double), erf(double), exp(double), expm1(double), fabs(double), floor(double), log(double), log1p(double),
    rint(double), sin(double), sqrt(double), tanh(double), pow(double, double), fma(double, double, double);
}
#define ARENITE_ONE(NAME) static inline float NAME(float x) { return __builtin_##NAME##f(x); }
ARENITE_ONE(cos) ARENITE_ONE(erf) ARENITE_ONE(exp) ARENITE_ONE(expm1) ARENITE_ONE(fabs) ARENITE_ONE(floor)
ARENITE_ONE(log) ARENITE_ONE(log1p) ARENITE_ONE(rint) ARENITE_ONE(sin) ARENITE_ONE(sqrt) ARENITE_ONE(tanh)
static inline float pow(float x, float y) { return __builtin_powf(x, y); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
template <class T> static inline bool signbit(T x) { return __builtin_signbit(x); }
#line 1 "each.cu"
)";
constexpr std::string_view behind = R"(
#undef each
template <unsigned... at> struct Places {};
template <unsigned n, unsigned... at> struct Count : Count<n - 1, n - 1, at...> {};
template <unsigned... at> struct Count<0, at...> { using Type = Places<at...>; };
template <class... Parameters, unsigned... at>
static void call(void (*kernel)(Three, Three, Three, Three, Parameters...), unsigned index, unsigned count, void** given,
                 Places<at...>) {
  kernel({index}, {1}, {0}, {count}, *static_cast<Parameters*>(given[at])...);
}
template <class... Parameters>
static void call(void (*kernel)(Three, Three, Three, Three, Parameters...), unsigned index, unsigned count, void** given) {
  call(kernel, index, count, given, typename Count<sizeof...(Parameters)>::Type());
}
extern "C" void element(unsigned index, unsigned count, void** given) {
  call(&each_of, index, count, given);
}
)";

// clang-format on
using Element = void (*)(unsigned index, unsigned count, void** given);

/// A folder that is gone with the process's last use of it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "arenite-each-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    path = name;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path path;
};

Element compile(const std::string& source) {
  const Folder folder;
  const std::filesystem::path code = folder.path / "each.cpp", library = folder.path / "each.so";
  std::ofstream(code) << before << source << behind;
  const std::string command = std::string("'" ARENITE_CXX
                                          "' -std=c++20 -O1 -w -fPIC -shared "
                                          "-ffp-contract=off -o '") +
                              library.string() + "' '" + code.string() + "'";
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("it does not compile:\n" + source);
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<Element>(::dlsym(loaded, "element"));
}

}  // namespace

inline namespace ARENITE_GRIDS {

Each::Each(const std::string& source) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, Element>;
  const std::lock_guard alone(mutex);
  Element& element = (*known)[source];
  if (element == nullptr) element = compile(source);
  kernel_ = reinterpret_cast<const void*>(element);
}

void Each::launch(const KernelCall& call, std::int64_t count,
                  std::span<void* const> parameters) const noexcept {
  if (count == 0 || leaves_out(call)) return;
  int narrow = static_cast<int>(count);
  const void* nothing = nullptr;
  std::array<void*, most_parameters + 3> all{};
  void** next = std::ranges::copy(parameters, all.data()).out;
  *next++ = is_narrow(count) ? static_cast<void*>(&narrow) : static_cast<void*>(&count);
  *next++ = &nothing;
  *next = &nothing;
  const auto element = reinterpret_cast<Element>(const_cast<void*>(kernel_));
  const auto indices = static_cast<unsigned>(count);
  for (unsigned i = 0; i < indices; ++i)
    element(from_the_first() ? i : indices - 1 - i, indices, all.data());
}

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::cuda
