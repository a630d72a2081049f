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
        .expected = gpu ? "one of " + there_are(support) : device_form,
        .hint = gpu && !support.built ? "build with CUDA, in Arenite's source: "
                                        "scripts/build-starpu, then scripts/build cuda"
                                      : ""});
}

constexpr std::string_view indexed = "cuda:";

/// None in what does not begin so, or goes on otherwise.
std::optional<int> index_of(const std::string& item) {
  if (!item.starts_with(indexed)) return std::nullopt;
  return whole_number(std::string_view(item).substr(indexed.size()));
}

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size(); begin += items.back().size() + 1)
    items.push_back(text.substr(begin, text.find('+', begin) - begin));
  return items;
}

int parse_one(const std::string& item, const CudaSupport& support) {
  if (item == "cpu" || (item == "auto" && support.devices.empty())) return the_cpu;
  if ((item == "cuda" || item == "auto") && !support.devices.empty())
    return support.devices.front().index;
  const std::optional<int> index = index_of(item);
  if (!index ||
      std::ranges::none_of(support.devices, [&](const CudaDevice& d) { return d.index == *index; }))
    refuse(item, support);
  return *index;
}

}  // namespace

std::vector<int> parse_devices(const std::string& text, const CudaSupport& support) {
  std::vector<int> devices;
  for (const std::string& item : items_of(text)) {
    const int device = parse_one(item, support);
    if (std::ranges::find(devices, device) != devices.end()) {
      fail({.found = "device '" + item + "' twice in '" + text + "'",
            .expected = "each device once"});
    }
    devices.push_back(device);
  }
  return devices;
}

bool has_device_form(const std::string& text) {
  return std::ranges::all_of(items_of(text), [](const std::string& item) {
    const std::optional<int> index = index_of(item);
    return item == "cpu" || item == "cuda" || item == "auto" || (index && *index >= 0);
  });
}

}  // namespace arenite::runtime
