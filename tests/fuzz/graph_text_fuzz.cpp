// Any bytes as a script: an Error, or a graph that prints and reads back to an equal one.
#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/text.hpp>

#include <cstdio>
#include <cstdlib>

#include "src/graph/test_operators.hpp"

using namespace arenite;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  graph::Graph read;
  try {
    read = graph::parse(script, graph::testing::table());
  } catch (const Error& error) {
    if (error.text().where.empty() || error.text().found.empty() || error.text().expected.empty()) {
      std::fprintf(stderr, "an error that says too little: %s\n", error.what());
      std::abort();
    }
    return 0;
  }
  const std::string once = graph::print(read);
  const graph::Graph again = graph::parse(once, graph::testing::table());
  std::string why;
  if (!graph::equal(read, again, &why) || graph::print(again) != once) {
    std::fprintf(stderr, "no fixed point: %s\n%s\n", why.c_str(), once.c_str());
    std::abort();
  }
  if (graph::dependencies(read).ops.size() != read.op_count()) std::abort();
  return 0;
}
