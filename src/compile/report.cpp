#include "src/compile/report.hpp"

#include <algorithm>
#include <ostream>

namespace arenite::compile {

std::ostream& operator<<(std::ostream& out, const Report& report) {
  std::size_t width = 0;
  for (const PassReport& pass : report.passes) width = std::max(width, pass.name.size());
  for (const PassReport& pass : report.passes) {
    out << "  " << pass.name << std::string(width - pass.name.size() + 2, ' ')
        << (pass.skipped.empty() ? pass.did : "not asked: " + pass.skipped) << '\n';
    for (const auto& [what, why] : pass.remarks.done)
      out << "    " << what << (why.empty() ? "" : " → " + why) << '\n';
    for (const auto& [what, why] : pass.remarks.left)
      out << "    left: " << what << ": " << why << '\n';
  }
  return out;
}

void print_graphs(std::ostream& out, const Report& report) {
  out << "# the front end's graph\n" << report.graph;
  for (const PassReport& pass : report.passes) {
    if (!pass.graph.empty())
      out << "\n# after " << pass.name << ": " << pass.did << '\n' << pass.graph;
  }
}

}  // namespace arenite::compile
