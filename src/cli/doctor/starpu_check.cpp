#include "src/cli/doctor/checks.hpp"
#include "src/cli/doctor/surroundings.hpp"

#include "src/base/processors.hpp"
#include "src/runtime/starpu.hpp"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

#include <string>

namespace arenite::cli::doctor {
namespace {

namespace starpu = runtime::starpu;

std::string library_file() {
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<const void*>(&starpu_init), &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : "an unknown place";
}

}  // namespace

Finding check_starpu() {
  Finding finding;
  const std::string version = starpu::version(), built_for = starpu::built_for();
  const std::string file = library_file();
  const auto with = [](bool has) { return has ? "with" : "without"; };
  finding.says =
      fmt::format("{}, {} CUDA, {} FxT, for at most {} CPU workers", version,
                  with(starpu::has_cuda), with(starpu::has_fxt), starpu::max_cpu_workers);
  finding.details.push_back(file);
  for (const std::string& setting : starpu_settings()) finding.details.push_back("set: " + setting);
  if (version != built_for) {
    const std::string what =
        fmt::format("the library is {}, and this program was built for {}", version, built_for);
    if (version.substr(0, version.rfind('.')) != built_for.substr(0, built_for.rfind('.'))) {
      finding.fails(what, "build again, or let LD_LIBRARY_PATH find the other one first");
    } else {
      finding.note(what, "build again");
    }
  }
  const int processors = usable_processors();
  if (processors > starpu::max_cpu_workers) {
    finding.note(
        fmt::format("it takes {} of the {} processors that it may use", starpu::max_cpu_workers,
                    processors),
        "build one for 64, in Arenite's source: scripts/build-starpu; the build finds it with "
        "-DCMAKE_PREFIX_PATH=$PWD/build/starpu");
  }
  finding.facts = {{"version", version},
                   {"built_for", built_for},
                   {"library", file},
                   {"cuda", starpu::has_cuda},
                   {"fxt", starpu::has_fxt},
                   {"max_cpu_workers", starpu::max_cpu_workers},
                   {"max_gpus", starpu::max_gpus},
                   {"settings", starpu_settings()}};
  return finding;
}

}  // namespace arenite::cli::doctor
