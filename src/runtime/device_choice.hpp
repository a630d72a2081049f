// What `--device` says.
#pragma once

#include <arenite/runtime/devices.hpp>

#include <string>
#include <vector>

namespace arenite::runtime {

/// Of which devices programs are to run on, in order: a GPU's index, or `the_cpu`.
inline constexpr int the_cpu = -1;

/// What such a text may be on some machine.
inline constexpr const char* device_form =
    "cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu";
bool has_device_form(const std::string& text);

/// "cpu", "cuda", "cuda:1", "auto", or several joined by "+". Throws Error on another text, on a
/// device named twice, and on a GPU that is not among those there are.
std::vector<int> parse_devices(const std::string& text, const CudaSupport& support);

}  // namespace arenite::runtime
