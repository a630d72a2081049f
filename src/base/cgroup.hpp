// What the control groups of this process leave it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace arenite {

struct CgroupLimits {
  std::optional<double> processors;    ///< time of so many
  std::optional<std::int64_t> memory;  ///< bytes
};

/// The tightest of the process's group and those above it, of version 1 and 2; none where nothing
/// limits, and where /proc or /sys do not say. They are looked for below `root`.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace arenite
