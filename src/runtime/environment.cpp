#include "src/runtime/environment.hpp"

#include <arenite/error.hpp>

#include "src/runtime/measurements.hpp"
#include "src/runtime/starpu_variables.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace arenite::runtime {
namespace {

/// "0 2-3,5-": numbers and ranges, the last of which may be open.
bool is_cpu_list(std::string_view text) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (item.empty()) continue;
    const std::size_t dash = item.find('-');
    const auto first = whole_number(item.substr(0, dash));
    if (!first || *first < 0) return false;
    if (dash == std::string_view::npos || dash + 1 == item.size()) continue;
    const auto last = whole_number(item.substr(dash + 1));
    if (!last || *last < *first) return false;
  }
  return true;
}

/// All of the text as a number; none in any other.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

bool switched_on(const char* name, const char* off) {
  const std::string text = environment(name);
  if (!text.empty() && text != "on" && text != "off") {
    fail(
        {.found = std::string(name) + "='" + text + "'", .expected = std::string("on, or ") + off});
  }
  return text != "off";
}

std::optional<int> whole_number(std::string_view text) { return number<int>(text); }

LentVariables::~LentVariables() {
  for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) {
    const auto& [name, text] = *it;
    if (text) {
      setenv(name.c_str(), text->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

void LentVariables::save(const char* name) {
  const char* text = std::getenv(name);
  saved_.emplace_back(name, text ? std::optional<std::string>(text) : std::nullopt);
}

void LentVariables::hide(const char* name) {
  save(name);
  unsetenv(name);
}

void LentVariables::set(const char* name, const std::string& value) {
  save(name);
  setenv(name, value.c_str(), 1);
}

void prepare_environment(LentVariables& lent, bool gpus) {
  // What the session decides itself: how many workers of which kind on the machine that there is,
  // their scheduler, and where data stays.
  for (const char* name :
       {"STARPU_NCPU", "STARPU_NCPUS", "STARPU_NCUDA", "STARPU_NOPENCL", "STARPU_NMIC",
        "STARPU_NMPI_MS", "STARPU_NHIP", "STARPU_NTCPIP_MS", "STARPU_SCHED",
        "STARPU_WORKERS_CUDAID", "STARPU_WORKERS_OPENCLID", "STARPU_NWORKER_PER_CUDA",
        "STARPU_CUDA_THREAD_PER_WORKER", "STARPU_CUDA_THREAD_PER_DEV", "STARPU_DISABLE_PINNING",
        "STARPU_DISK_SWAP", "STARPU_HWLOC_INPUT"})
    lent.hide(name);
  for (const char* name : {"STARPU_WORKERS_CPUID", "STARPU_WORKERS_COREID"}) {
    const std::string text = environment(name);
    if (text.find_first_not_of(" ,") == std::string::npos) {
      lent.hide(name);  // StarPU divides by the length of the list
    } else if (!is_cpu_list(text)) {
      fail({.found = std::string(name) + "='" + text + "'",
            .expected = "numbers and ranges of processors, as in '0 2-3'"});
    }
  }
  const auto check = [&](std::string_view variable, const char* expected, auto reads) {
    const std::string name = "STARPU_" + std::string(variable), text = environment(name.c_str());
    if (text.empty()) {
      lent.hide(name.c_str());
    } else if (!reads(text)) {
      fail({.found = name + "='" + text + "'", .expected = expected});
    }
  };
  for (const std::string_view name : starpu::whole_number_variables)
    check(name, "a whole number", whole_number);
  for (const std::string_view name : starpu::number_variables)
    check(name, "a number", number<double>);
  // A library does not chat on its user's terminal; whoever wants StarPU's messages says so.
  if (environment("STARPU_SILENT").empty()) setenv("STARPU_SILENT", "1", 1);
  // Workers stay on the processors that this process may use. StarPU 1.3 would take the machine's
  // first ones, and so would the process next to this one.
  if (environment("STARPU_WORKERS_GETBIND").empty()) lent.set("STARPU_WORKERS_GETBIND", "1");
  lent.set("STARPU_PERF_MODEL_DIR", measurements_folder());
  if (gpus) return;
  // CPU workers need no devices. To look for them hwloc asks X servers for screens, OpenCL for
  // platforms, and PCI for what hangs on it: 2 ms each in a virtual machine.
  if (environment("HWLOC_PLUGINS_PATH").empty()) lent.set("HWLOC_PLUGINS_PATH", "/nonexistent");
  if (environment("HWLOC_COMPONENTS").empty()) lent.set("HWLOC_COMPONENTS", "-linux:0x18");
}

}  // namespace arenite::runtime
