// What one evaluation through the C ABI costs when the kernels do next to nothing: the way there
// and back. Each evaluation is timed by itself, since a machine's other work makes means say
// little.
#include <arenite/arenite.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace {

const char* const tiny = R"(
  $1 = InputTensor(x, float32, [1, 4]);
  $2 = ReLUNode($1);
  result = $2;)";

/// One percentile of times in microseconds; reorders them.
double percentile(std::vector<double>& times, double part) {
  const auto at =
      times.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

void evaluate_tiny(benchmark::State& bench) {
  arenite_session* session = nullptr;
  arenite_model* model = nullptr;
  char* message = nullptr;
  const arenite_session_options options{.device = "cpu",
                                        .workers = static_cast<int>(bench.range(0))};
  if (arenite_session_create(&options, &session, &message) != ARENITE_OK ||
      arenite_model_create(session, tiny, nullptr, 0, nullptr, &model, &message) != ARENITE_OK) {
    bench.SkipWithError(message);
    arenite_free(message);
    return;
  }
  const float x[4] = {1, -2, 3, -4};
  float y[4] = {};
  const arenite_tensor input{.name = "x", .data = x, .bytes = sizeof x};
  void* const output = y;
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(bench.max_iterations));
  for (auto _ : bench) {
    const auto start = std::chrono::steady_clock::now();
    arenite_model_evaluate(model, &input, 1, &output, 1, nullptr);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count());
  }
  bench.counters["median_us"] = percentile(times, 0.5);
  bench.counters["least_us"] = percentile(times, 0);
  bench.counters["p99_us"] = percentile(times, 0.99);
  arenite_model_free(model);
  arenite_session_destroy(session);
}

}  // namespace

BENCHMARK(evaluate_tiny)->ArgName("workers")->Arg(1)->Arg(2)->UseRealTime()->Iterations(20000);
