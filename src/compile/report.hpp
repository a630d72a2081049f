// What became of a graph on its way to a program, pass by pass.
#pragma once

#include <arenite/graph/remarks.hpp>

#include <iosfwd>
#include <string>
#include <vector>

namespace arenite::compile {

struct PassReport {
  std::string name;
  std::string did;      ///< "3 chains"
  std::string skipped;  ///< why it was not asked at all; empty: it was
  graph::Remarks remarks;
  std::string graph;  ///< as text, behind a pass that changed it; where it was asked for
};

struct Report {
  std::string graph;               ///< as the front end built it, as text; where it was asked for
  std::vector<PassReport> passes;  ///< in their order

  /// Why the batch was not split, the first reason; empty: it was, if only in one lane.
  std::string undivided;
};

/// The graph of the front end, then behind each pass that changed it.
void print_graphs(std::ostream& out, const Report& report);

/// A line a pass, and below it what it did and what it left, and why: for `--explain` and
/// `--passes`.
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace arenite::compile
