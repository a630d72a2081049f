// How errors and helps name scripts and pages: where they are installed beside the running program,
// by their paths, and else as what Arenite's source has.
#pragma once

#include <string>

namespace arenite {

/// "fetch it: /opt/share/arenite/datasets/fetch mnist", or
/// "fetch it, in Arenite's source: datasets/fetch mnist"
std::string by_script(const std::string& what, const std::string& script,
                      const std::string& arguments);

/// "/opt/share/doc/arenite/docs/gpu.md", or "docs/gpu.md in Arenite's source".
std::string page(const std::string& name);

/// Where pages stand: "/opt/share/doc/arenite", or "Arenite's source".
std::string place_of_pages();

}  // namespace arenite
