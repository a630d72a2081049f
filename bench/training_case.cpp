#include "bench/training_case.hpp"

#include <arenite/arenite.hpp>

#include "bench/onednn_loop.hpp"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

extern char** environ;

namespace arenite::bench {
namespace {

using nlohmann::json;

constexpr std::int64_t set_size = 12800;  // a multiple of 10, 64 and 256

const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.seed = 1, .train = set_size, .test = 10});
  return data;
}

struct Pass {
  double loss = 0, seconds = 0;
  std::int64_t samples = 0;

  Pass& operator+=(const Pass& later) {
    loss = later.loss;
    seconds += later.seconds;
    samples += later.samples;
    return *this;
  }
};

/// `pass(batches)` trains once on that many batches from the set's beginning. Sets `batches` to
/// what was measured.
template <class Train>
json measure_rate(const Case& what, std::int64_t& batches, Train pass) {
  constexpr double warm_up_seconds = 0.1;  // caches, predictors and the clock's rate settle
  const std::int64_t most = set_size / what.batch;
  batches = std::min<std::int64_t>(4, most);
  pass(batches);
  Pass warm;
  while (warm.seconds < warm_up_seconds) warm += pass(batches);
  const double rate = static_cast<double>(warm.samples) / warm.seconds;
  const double wanted = rate * what.seconds / 4 / static_cast<double>(what.batch);
  batches = std::clamp<std::int64_t>(std::llround(wanted), std::min<std::int64_t>(4, most), most);
  pass(batches);  // other programs than before
  Pass sum;
  do {
    sum += pass(batches);
  } while (sum.seconds < what.seconds);
  return {{"samples_per_second", static_cast<double>(sum.samples) / sum.seconds},
          {"loss", sum.loss}};
}

json measure_arenite(const Case& what) {
  runtime::Session session({.workers = what.workers});
  train::Trainer trainer(session, nn::model(what.network).layers, images().shape(),
                         {.batch = what.batch});
  std::int64_t batches = 0;
  json result = measure_rate(what, batches, [&](std::int64_t count) {
    const train::Metrics m =
        trainer.fit(images().train.first(count * what.batch), {.epochs = 1}).train;
    return Pass{.loss = m.loss, .seconds = m.seconds, .samples = m.samples};
  });
  train::FitOptions profiled{.epochs = 1};
  profiled.profile_steps = std::min<long>(batches, 1000);
  const auto report = trainer.fit(images().train.first(batches * what.batch), profiled);
  result["lanes"] = trainer.lanes();
  result["profile"] = json::parse(runtime::to_json(*report.profile));
  return result;
}

json measure_onednn(const Case& what) {
  OnednnLoop loop(images().train, {.batch = what.batch, .threads = what.workers});
  std::int64_t batches = 0;
  return measure_rate(what, batches, [&](std::int64_t count) {
    const OnednnLoop::Epoch epoch = loop.run(count);
    return Pass{.loss = epoch.loss, .seconds = epoch.seconds, .samples = epoch.samples};
  });
}

/// Ours, with OpenMP told what one tells it for a benchmark.
std::vector<std::string> child_environment(const Case& what) {
  std::vector<std::string> list;
  for (char** entry = environ; *entry; ++entry) {
    if (std::strncmp(*entry, "OMP_", 4) != 0 && std::strncmp(*entry, "STARPU_NCPU", 11) != 0 &&
        std::strncmp(*entry, "STARPU_WORKERS_", 15) != 0)
      list.emplace_back(*entry);
  }
  list.push_back("OMP_NUM_THREADS=" + std::to_string(what.workers));
  list.emplace_back("STARPU_WORKERS_GETBIND=1");  // else it binds workers to cores we did not give
  // Only the rival has threads to bind. Libgomp's own waiting, a spin and then a sleep, is as fast
  // as OMP_WAIT_POLICY=active on a quiet machine, and does not collapse on another.
  if (what.engine == "onednn") list.emplace_back("OMP_PROC_BIND=close");
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void no_child(const std::string& why) {
  throw Failure({.found = "no process for a measurement: " + why, .expected = "a child process"});
}

/// While it lives, this thread and the processes it starts keep to the first `count` of its cores
/// (all, if there are fewer).
class FewerCores {
 public:
  explicit FewerCores(int count) {
    if (sched_getaffinity(0, sizeof(cpu_set_t), &before_) != 0) no_child(std::strerror(errno));
    cpu_set_t fewer;
    CPU_ZERO(&fewer);
    for (int cpu = 0, left = count; cpu < CPU_SETSIZE && left > 0; ++cpu) {
      if (!CPU_ISSET(cpu, &before_)) continue;
      CPU_SET(cpu, &fewer);
      --left;
    }
    if (sched_setaffinity(0, sizeof(cpu_set_t), &fewer) != 0) no_child(std::strerror(errno));
  }
  ~FewerCores() { sched_setaffinity(0, sizeof(cpu_set_t), &before_); }
  FewerCores(const FewerCores&) = delete;
  FewerCores& operator=(const FewerCores&) = delete;

 private:
  cpu_set_t before_{};
};

/// What the program says on its standard output until it ends, kept to that many cores; its errors
/// go where ours go.
std::string output_of(std::vector<std::string> arguments, std::vector<std::string> environment,
                      int cores, int& status) {
  const FewerCores kept(cores);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) no_child(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    no_child(std::strerror(error));
  }
  std::string output;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

}  // namespace

json measure(const Case& what) {
  return what.engine == "onednn" ? measure_onednn(what) : measure_arenite(what);
}

json measure_apart(const Case& what) {
  int status = 0;
  const std::string output =
      output_of({"training_table", "--measure", what.engine, "--network", what.network, "--batch",
                 std::to_string(what.batch), "--workers", std::to_string(what.workers), "--seconds",
                 std::to_string(what.seconds)},
                child_environment(what), what.workers, status);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Failure({.found = "a measurement that ended with status " + std::to_string(status),
                   .expected = "a line of JSON",
                   .where = what.engine + " " + what.network + ", batch " +
                            std::to_string(what.batch) + ", workers " +
                            std::to_string(what.workers)});
  }
  return json::parse(output);
}

}  // namespace arenite::bench
