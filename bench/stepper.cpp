#include "bench/stepper.hpp"

#include <arenite/arenite.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>

namespace arenite::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void no_stepper(const std::string& why) {
  throw Failure({.found = "no process that trains: " + why, .expected = "a child process"});
}

bool read_all(int file, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t done = read(file, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done, count -= static_cast<std::size_t>(done);
  }
  return true;
}

template <class T>
void send(int file, const T* values, std::size_t count) {
  const char* bytes = reinterpret_cast<const char*>(values);
  for (std::size_t left = count * sizeof(T); left > 0;) {
    const ssize_t done = write(file, bytes, left);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) no_stepper(std::strerror(errno));
    bytes += done, left -= static_cast<std::size_t>(done);
  }
}

constexpr std::int64_t epoch = 1000;  // steps

/// The child: as many steps as it reads a number of, until there is none to read.
[[noreturn]] void train_on_demand(const StepperOptions& options, int in, int out) {
  const nn::NamedModel& model = nn::model(options.model);
  const data::SyntheticOptions size{.seed = 1, .train = epoch * options.batch, .test = 10};
  const data::ImageData data =
      model.dataset == "synthetic-color" ? data::synthetic_color(size) : data::synthetic(size);
  runtime::Session session({.workers = options.workers});
  train::Trainer trainer(
      session, model.layers, data.shape(),
      {.batch = options.batch, .optimizer = optim::sgd({.lr = options.lr, .momentum = 0.9f})});
  trainer.prepare(&data.train, nullptr);
  const std::string text =
      model.name + ", batch " + std::to_string(options.batch) + " in " +
      to_string(graph::BatchCut{trainer.shards(), trainer.lanes()}, trainer.shards_at_once()) +
      ", " + session.description();
  const std::size_t length = text.size();
  send(out, &length, 1);
  send(out, text.data(), length);

  std::vector<double> times;
  long wanted = 0;
  const auto next = [&] {
    if (!read_all(in, reinterpret_cast<char*>(&wanted), sizeof wanted)) _exit(0);
    times.clear();
    times.reserve(static_cast<std::size_t>(wanted));
  };
  Clock::time_point last;
  train::FitOptions how{.epochs = 1, .progress_seconds = 0};
  how.on_progress = [&](const train::Progress& now) {
    const std::chrono::duration<double, std::micro> passed = Clock::now() - last;
    times.push_back(now.done == options.batch ? now.seconds * 1e6 : passed.count());
    if (static_cast<long>(times.size()) == wanted) {
      send(out, times.data(), times.size());
      next();
    }
    last = Clock::now();
  };
  next();
  for (;;) trainer.fit(data.train, how);
}

}  // namespace

Stepper::Stepper(const StepperOptions& options) {
  std::array<int, 2> asked{}, told{};
  if (pipe(asked.data()) != 0 || pipe(told.data()) != 0) no_stepper(std::strerror(errno));
  child_ = fork();
  if (child_ < 0) no_stepper(std::strerror(errno));
  if (child_ == 0) {
    close(asked[1]), close(told[0]);
    try {
      train_on_demand(options, asked[0], told[1]);
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
    }
    _exit(1);
  }
  close(asked[0]), close(told[1]);
  ends_ = {told[0], asked[1]};
  std::size_t length = 0;
  receive(&length, 1);
  description_.resize(length);
  receive(description_.data(), length);
}

Stepper::~Stepper() {
  close(ends_[0]), close(ends_[1]);
  kill(child_, SIGKILL);  // it may rest, and has nothing to save
  waitpid(child_, nullptr, 0);
}

template <class T>
void Stepper::receive(T* values, std::size_t count) {
  if (!read_all(ends_[0], reinterpret_cast<char*>(values), count * sizeof(T)))
    no_stepper("it ended");
}

std::vector<double> Stepper::run(long steps) {
  kill(child_, SIGCONT);
  std::vector<double> times(static_cast<std::size_t>(steps));
  send(ends_[1], &steps, 1);
  receive(times.data(), times.size());
  return times;
}

void Stepper::rest() { kill(child_, SIGSTOP); }

}  // namespace arenite::bench
