// What it takes to make a program of a graph: its passes, its plan, and the proof of that plan. No
// kernel is compiled, no block pinned, and StarPU does not run.
#include <arenite/graph/text.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/train/trainer.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"
#include "src/compile/compile.hpp"
#include "src/train/compiled_step.hpp"

namespace {

using namespace arenite;

struct Times {
  double passes = 0, plan = 0, verification = 0;  // seconds
  std::size_t ops = 0, tasks = 0;                 // of all programs

  double all() const { return passes + plan + verification; }
};

/// Of this thread on a processor: what else runs counts little.
double now() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// One program, timed: `lower` does the passes.
template <class Lower>
void time(const Lower& lower, plan::StateLayout& state, Times& times) {
  double start = now();
  runtime::ProgramSpec spec = lower().spec;
  times.passes += now() - start;
  start = now();
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state, compile::Options().plan);
  times.plan += now() - start;
  start = now();
  plan::verify_step(spec.graph, spec.schedule, spec.plan);
  times.verification += now() - start;
  times.tasks += spec.schedule.tasks.size();
  for (const graph::Task& task : spec.schedule.tasks) times.ops += task.ops.size();
}

/// Steps and evaluations as the trainer makes them of Fashion-MNIST: whole batches and remainders.
Times network(const std::string& name, std::int64_t batch) {
  const nn::NamedModel& model = nn::model(name);
  const train::TrainerOptions options;
  plan::StateLayout state;
  Times times;
  for (const auto& [training, samples] : {std::pair{true, 60'000}, std::pair{false, 10'000}}) {
    for (const std::int64_t size : {batch, samples % batch}) {
      if (size == 0) continue;
      const train::StepRequest request{.name = "program",
                                       .batch = size,
                                       .dataset = samples,
                                       .image = model.image,
                                       .training = training,
                                       .how = {.lanes = options.lanes, .target = options.target}};
      time(
          [&] {
            return train::compile_step(model.layers, options.loss, options.optimizer, request);
          },
          state, times);
    }
  }
  return times;
}

Times script(const std::string& text) {
  const graph::Graph graph = graph::parse(text, operators());
  plan::StateLayout state;
  Times times;
  const compile::Entry entry{.name = "program", .train = graph.training.has_value()};
  time([&] { return compile::lower(graph, entry, {}); }, state, times);
  return times;
}

/// add, relu, add, …, each some microseconds of work: thousands of tasks.
std::string chain(int ops) {
  std::string text = "$1 = InputTensor(x, float32, [256, 256]);\n";
  for (int i = 1; i <= ops; ++i)
    text += fmt::format("${} = {}(${}{});\n", i + 1, i % 2 == 1 ? "add" : "relu", i,
                        i % 2 == 1 ? ", $1" : "");
  return text + fmt::format("result = ${};", ops + 1);
}

/// Blocks like a transformer's over so many rows of `width`, trained.
class Blocks {
 public:
  Blocks(int count, std::int64_t rows, std::int64_t width) : width_(width) {
    text_ =
        fmt::format("$1 = InputTensor(x, float32, [{}, {}]);\n$2 = InputTensor(y, int32, [{}]);\n",
                    rows, width, rows);
    int x = 1;
    for (int i = 0; i < count; ++i) x = block(x);
    const int logits = op("matmul(${}, ${})", normed(x), matrix());
    const int loss = next_;
    next_ += 3;
    text_ += fmt::format("${}, ${}, ${} = softmax_cross_entropy(${}, $2, divisor={});\n", loss,
                         loss + 1, loss + 2, logits, rows);
    text_ += fmt::format(
        "train(${}, optimizer=sgd, learning_rate=0.1, momentum=0.9, "
        "parameters=[{}]);\nresult = ${};",
        loss, parameters_, loss);
  }

  const std::string& text() const { return text_; }

 private:
  int block(int x) {
    const int n = normed(x);
    const int query = product(n), key = product(n), value = product(n);
    const int scores = op("softmax(${})", op("matmul(${}, ${}, transpose_b=1)", query, key));
    const int attended = op("add(${}, ${})", x, product(op("matmul(${}, ${})", scores, value)));
    const int m = normed(attended);
    const int gate = op("silu(${})", product(m));
    return op("add(${}, ${})", attended, product(op("mul(${}, ${})", gate, product(m))));
  }

  template <class... Args>
  int op(const char* call, Args... operands) {
    text_ += fmt::format("${} = ", next_) + fmt::format(fmt::runtime(call), operands...) + ";\n";
    return next_++;
  }

  int parameter(const std::string& shape) {
    if (!parameters_.empty()) parameters_ += ", ";
    parameters_ += fmt::format("${}", next_);
    return op("ParameterTensor(p{}, float32, {})", next_, shape);
  }
  int matrix() { return parameter(fmt::format("[{}, {}]", width_, width_)); }
  int product(int x) {
    const int weight = matrix();
    return op("matmul(${}, ${})", x, weight);
  }
  int normed(int x) {
    const int weight = parameter(fmt::format("[{}]", width_));
    return op("rms_norm(${}, ${})", x, weight);
  }

  std::int64_t width_;
  int next_ = 3;
  std::string text_, parameters_;
};

struct Case {
  std::string name;
  double goal;  // seconds
  std::function<Times()> run;
};

std::vector<Case> cases() {
  return {{"cnn2", 0.05, [] { return network("cnn2", 64); }},
          {"vgg-small", 4, [] { return network("vgg-small", 64); }},
          {"blocks-12", 1, [] { return script(Blocks(12, 64, 768).text()); }},
          {"chain-10000", 1, [] { return script(chain(10'000)); }},
          {"chain-30000", 4, [] { return script(chain(30'000)); }}};
}

Times median(std::vector<Times> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(),
                   [](const Times& a, const Times& b) { return a.all() < b.all(); });
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  cli::Command app("compile_speed",
                   "Times how graphs become programs: passes, plan and its verification");
  app.about = {
      "Seconds of a processor; the median of some runs. vgg-small's is the exact search's, which "
      "may take "
      "its budget."};
  app.statuses = {{cli::exit_ok, "all goals are reached"}, {cli::exit_failure, "not all are"}};
  const std::vector<std::string> names = cli::names_of(cases());
  std::vector<std::string> only;
  int runs = 3;
  app.add_choices("CASE", only, names, fmt::format("only these: {}", fmt::join(names, ", ")));
  cli::add_whole_number(app, "--runs", runs, 1, 1000, "of each")->default_str("3");
  app.run = [&] {
    std::cout << fmt::format("{:17} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9} {:>6}\n", "", "ops",
                             "tasks", "passes", "plan", "verify", "all", "goal");
    bool reached = true;
    for (const Case& one : cases()) {
      if (!only.empty() && std::ranges::find(only, one.name) == only.end()) continue;
      std::vector<Times> all;
      one.run();  // once, lest a library's generating of code counts
      for (int run = 0; run < runs; ++run) all.push_back(one.run());
      const Times times = median(std::move(all));
      std::cout << fmt::format("{:17} {:>6} {:>6} {:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f} {:>6}\n",
                               one.name, times.ops, times.tasks, times.passes, times.plan,
                               times.verification, times.all(), one.goal)
                << std::flush;
      reached = reached && times.all() <= one.goal;
    }
    if (!reached) std::cout << "not all goals are reached\n";
    return reached ? 0 : 1;
  };
  return cli::run_command(app, argc, argv);
}
