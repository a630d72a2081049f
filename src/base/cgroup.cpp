#include "src/base/cgroup.hpp"

#include <fstream>
#include <functional>
#include <string>

namespace arenite {
namespace {

namespace fs = std::filesystem;

template <class T>
void tighten(std::optional<T>& limit, T other) {
  if (!limit || other < *limit) limit = other;
}

/// A file's numbers: none where it is not there, or says "max".
std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

void read_v2(const fs::path& group, CgroupLimits& limits) {
  std::ifstream file(group / "cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && period > 0) tighten(limits.processors, quota / period);
  if (const auto bytes = number_in(group / "memory.max"))
    tighten(limits.memory, static_cast<std::int64_t>(*bytes));
}

void read_v1_cpu(const fs::path& group, CgroupLimits& limits) {
  const auto quota = number_in(group / "cpu.cfs_quota_us");
  const auto period = number_in(group / "cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0) tighten(limits.processors, *quota / *period);
}

void read_v1_memory(const fs::path& group, CgroupLimits& limits) {
  const auto bytes = number_in(group / "memory.limit_in_bytes");
  constexpr double unlimited = 1e18;  // "none" is the largest multiple of a page
  if (bytes && *bytes < unlimited) tighten(limits.memory, static_cast<std::int64_t>(*bytes));
}

using Reader = std::function<void(const fs::path& group)>;

/// The group, those above it, and the root of the hierarchy. A container may see but a part of the
/// hierarchy, under another path than the group's own.
void walk(const fs::path& hierarchy, const std::string& group, const Reader& read) {
  fs::path inner = fs::path(group).lexically_normal().relative_path();
  while (!inner.empty()) {
    read(hierarchy / inner);
    inner = inner.parent_path();
  }
  read(hierarchy);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const fs::path hierarchies = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // "4:cpu,cpuacct:/group", and "0::/group" of version 2.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const std::string list = "," + controllers + ",";
    const auto each = [&](const char* name, void (*read)(const fs::path&, CgroupLimits&)) {
      if (list.find("," + std::string(name) + ",") == std::string::npos) return;
      for (const std::string& folder : {controllers, std::string(name)})
        walk(hierarchies / folder, group, [&](const fs::path& at) { read(at, limits); });
    };
    each("cpu", read_v1_cpu);
    each("memory", read_v1_memory);
    if (!controllers.empty()) continue;
    for (const char* folder : {"", "unified"})
      walk(hierarchies / folder, group, [&](const fs::path& at) { read_v2(at, limits); });
  }
  return limits;
}

}  // namespace arenite
