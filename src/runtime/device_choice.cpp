#include "src/runtime/device_choice.hpp"

#include <arenite/error.hpp>

#include "src/runtime/environment.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace arenite::runtime {
namespace {

std::string there_are(const CudaSupport& support) {
  std::string all = "cpu";
  for (const CudaDevice& device : support.devices)
    all += ", cuda:" + std::to_string(device.index) + " (" + device.name + ")";
  return all;
}

[[noreturn]] void refuse(const std::string& item, const CudaSupport& support) {
  const bool gpu = item.starts_with("cuda");
  fail({.found = "device '" + item + "'" +
                 (gpu && !support.reason.empty() ? ", but " + support.reason : ""),
        .expected = gpu ? "one of " + there_are(support)
                        : "cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu",
        .hint = gpu && !support.built
                    ? "build with CUDA: scripts/build-starpu, then the preset cuda"
                    : ""});
}

int parse_one(const std::string& item, const CudaSupport& support) {
  if (item == "cpu" || (item == "auto" && support.devices.empty())) return the_cpu;
  if ((item == "cuda" || item == "auto") && !support.devices.empty())
    return support.devices.front().index;
  constexpr std::string_view prefix = "cuda:";
  if (!item.starts_with(prefix)) refuse(item, support);
  const std::optional<int> index = whole_number(std::string_view(item).substr(prefix.size()));
  if (!index ||
      std::ranges::none_of(support.devices, [&](const CudaDevice& d) { return d.index == *index; }))
    refuse(item, support);
  return *index;
}

}  // namespace

std::vector<int> parse_devices(const std::string& text, const CudaSupport& support) {
  std::vector<int> devices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const int device = parse_one(text.substr(begin, end - begin), support);
    if (std::ranges::find(devices, device) != devices.end()) {
      fail({.found = "device '" + text.substr(begin, end - begin) + "' twice in '" + text + "'",
            .expected = "each device once"});
    }
    devices.push_back(device);
    begin = end + 1;
  }
  return devices;
}

}  // namespace arenite::runtime
