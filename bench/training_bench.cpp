// Samples a second of whole training steps: the next batch gathered, forward, backward, update.
#include <benchmark/benchmark.h>
#include <arenite/arenite.hpp>

namespace {

using namespace arenite;

const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.seed = 1, .train = 12800, .test = 10});
  return data;
}

void train_epochs(benchmark::State& bench, const char* model) {
  const std::int64_t batch = bench.range(0);
  const int workers = static_cast<int>(bench.range(1));
  runtime::Session session({.workers = workers});
  train::Trainer trainer(session, nn::model(model).layers, images().shape(), {.batch = batch});
  trainer.fit(images().train, {.epochs = 1});  // warm-up
  for (auto _ : bench) trainer.fit(images().train, {.epochs = 1});
  const auto samples = static_cast<double>(bench.iterations() * images().train.count);
  bench.counters["samples/s"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
  bench.counters["lanes"] = trainer.lanes();
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "workers"})
      ->ArgsProduct({{10, 64, 256}, {1, 2}})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

BENCHMARK_CAPTURE(train_epochs, mlp, "mlp")->Apply(sizes);
BENCHMARK_CAPTURE(train_epochs, cnn1, "cnn1")->Apply(sizes);
BENCHMARK_CAPTURE(train_epochs, lenet5, "lenet5")->Apply(sizes);
BENCHMARK_CAPTURE(train_epochs, cnn2, "cnn2")->Apply(sizes);
