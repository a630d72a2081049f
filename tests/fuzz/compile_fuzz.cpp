// Any bytes as a script for the C interface: a message, or a model that runs, twice, on small
// numbers. And its lines one by one for a builder, whose script says what it says when it is read.
// Input: one byte that is skipped, so that the seeds of graph_text_fuzz serve here, then the
// script.
#include <arenite/arenite.h>
#include <arenite/graph/target.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include "tests/fuzz/fuzzing.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace arenite;
using fuzzing::require;

// What one script may take of this machine; larger ones are only read.
constexpr std::int64_t most_bytes = 1 << 20;
constexpr double most_microseconds = 20'000;

/// Bytes of the small numbers that all data consist of: indices in and out of range, tiny floats.
const std::vector<std::uint8_t>& data() {
  static const std::vector<std::uint8_t> all = [] {
    std::vector<std::uint8_t> bytes(most_bytes);
    for (std::size_t i = 0; i < bytes.size(); i += 8)
      bytes[i] = static_cast<std::uint8_t>(i / 8 * 5 % 7);
    return bytes;
  }();
  return all;
}

arenite_session* session() {
  static arenite_session* const one = [] {
    const arenite_session_options options{.device = "cpu", .workers = 1};
    arenite_session* made = nullptr;
    require(arenite_session_create(&options, &made, nullptr) == ARENITE_OK, "no session");
    return made;
  }();
  return one;
}

/// Whether a call succeeded; one that did not has to say why.
template <class Call>
bool succeeded(Call call) {
  char* message = nullptr;
  const arenite_status status = call(&message);
  require((status == ARENITE_OK) == (message == nullptr), "a status without its message");
  require(message == nullptr || *message != '\0', "an empty message");
  arenite_free(message);
  return status == ARENITE_OK;
}

std::int64_t bytes_of(const graph::Graph& graph) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < graph.storage_count() && sum <= most_bytes; ++i)
    sum += graph.storage(graph::StorageId(i)).bytes;
  return sum;
}

/// All trips of all loops, as if each stood in the one before.
double microseconds_of(const graph::Graph& graph) {
  double sum = 0, trips = 1;
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const graph::OpView op(graph, graph[graph::OpId(i)]);
    sum += graph::default_target().microseconds(op);
    if (op.attributes().has("max_trips")) trips *= static_cast<double>(op.integer("max_trips") + 1);
  }
  return sum * trips;
}

std::vector<arenite_tensor> tensors(const graph::Graph& graph, graph::StorageClass cls) {
  std::vector<arenite_tensor> all;
  for (const graph::ValueId id : graph.declared(cls))
    all.push_back({graph[id].name.c_str(), data().data(), ARENITE_UNKNOWN_BYTES});
  return all;
}

void evaluate(arenite_model* model, const graph::Graph& graph) {
  const std::vector<arenite_tensor> inputs = tensors(graph, graph::StorageClass::input);
  std::vector<std::vector<std::uint8_t>> places(arenite_model_output_count(model));
  std::vector<void*> outputs;
  for (std::size_t i = 0; i < places.size(); ++i) {
    arenite_port port;
    require(arenite_model_output(model, i, &port, nullptr) == ARENITE_OK, "an output that is none");
    places[i].resize(static_cast<std::size_t>(port.bytes));
    outputs.push_back(places[i].data());
  }
  for (int time = 0; time < 2; ++time) {
    succeeded([&](char** message) {
      return arenite_model_evaluate(model, inputs.data(), inputs.size(), outputs.data(),
                                    outputs.size(), message);
    });
  }
}

/// The statements of a line each, of the values before them, which begin with number 1 as the
/// script's own may. Blocks are begun, and ended by '}'.
void build(const std::string& script) {
  arenite_builder* builder = nullptr;
  require(arenite_builder_create(&builder, nullptr) == ARENITE_OK, "no builder");
  std::vector<arenite_value> values, results(64);
  std::istringstream lines(script);
  std::string line;
  for (int count = 0; count < 100 && std::getline(lines, line); ++count) {
    const bool has_results = line.starts_with('$');
    if (const auto left = line.find(" = "); has_results && left != std::string::npos)
      line.erase(0, left + 3);
    std::size_t made = 0;
    const auto call = [&](auto function, std::size_t room) {
      return succeeded([&](char** message) {
        return function(builder, line.c_str(), values.data(), values.size(), results.data(), room,
                        &made, message);
      });
    };
    bool done = false;
    if (line.starts_with('}')) {
      done = succeeded([&](char** message) {
        const std::size_t last = values.empty() ? 0 : 1;
        return arenite_builder_end(builder, values.data() + values.size() - last, last,
                                   results.data(), results.size(), &made, message);
      });
    } else if (line.starts_with("if") || line.starts_with("loop")) {
      done = call(arenite_builder_begin, results.size());
    } else {
      done = call(arenite_builder_add, has_results ? results.size() : 0);
    }
    if (done)
      values.insert(values.end(), results.begin(),
                    results.begin() + static_cast<std::ptrdiff_t>(made));
  }
  char* text = nullptr;
  const std::size_t last = values.empty() ? 0 : 1;
  if (succeeded([&](char** message) {
        return arenite_builder_script(builder, values.data() + values.size() - last, last, &text,
                                      message);
      })) {
    require(graph::print(graph::parse(text, operators())) == text, "a script that reads otherwise");
    arenite_free(text);
  }
  arenite_builder_free(builder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::string script = rest.c_str();  // as C sees it
  build(script);
  std::optional<graph::Graph> graph;
  const bool read = fuzzing::accepted([&] { graph = graph::parse(script, operators()); });
  if (read && (bytes_of(*graph) > most_bytes || microseconds_of(*graph) > most_microseconds))
    return 0;
  const std::vector<arenite_tensor> constants =
      read ? tensors(*graph, graph::StorageClass::constant) : std::vector<arenite_tensor>{};
  arenite_model* model = nullptr;
  const bool compiled = succeeded([&](char** message) {
    return arenite_model_create(session(), script.c_str(), constants.data(), constants.size(),
                                nullptr, &model, message);
  });
  require(compiled == (model != nullptr), "a model after all, or none");
  require(read || !compiled, "a model of what is no script");
  if (!compiled) return 0;
  arenite_memory memory;
  require(arenite_model_memory(model, &memory, nullptr) == ARENITE_OK, "no memory to tell of");
  require(memory.arena_bytes >= memory.lower_bound, "a plan below its bound");
  evaluate(model, *graph);
  arenite_model_free(model);
  return 0;
}
