#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/cli/progress.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace arenite::cli {
namespace {

int columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const long s = std::lround(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return;
  throw Failure({.found = "the output could not be written: " + system_reason(),
                 .expected = "a standard output that takes it"});
}

ProgressDisplay::ProgressDisplay(int epochs)
    : epochs_(epochs), terminal_(isatty(STDOUT_FILENO) != 0) {}

void ProgressDisplay::show(const train::Progress& p) {
  if (!terminal_) return;
  const double done = p.total == 0 ? 1 : static_cast<double>(p.done) / static_cast<double>(p.total);
  const double rate = p.seconds > 0 ? static_cast<double>(p.done) / p.seconds : 0;
  const double left = done > 0 ? p.seconds / done * (p.epochs - p.epoch - done) : 0;
  const std::string text = fmt::format(
      "epoch {}/{} {:3.0f} %  {:.0f} samples/s  loss {:.4f}  accuracy {:.2f} %  ETA {}",
      p.epoch + 1, p.epochs, done * 100, rate, p.loss, p.accuracy * 100, duration_text(left));
  const int room = std::clamp(columns() - static_cast<int>(text.size()) - 4, 0, 30);
  std::string bar;
  if (room >= 5) {
    const int filled = static_cast<int>(done * room);
    bar = "[" + std::string(static_cast<std::size_t>(filled), '#') +
          std::string(static_cast<std::size_t>(room - filled), '.') + "] ";
  }
  std::fputs(("\r\033[K" + bar + text).c_str(), stdout);
  std::fflush(stdout);
}

void ProgressDisplay::first_step(double seconds) {
  std::fputs(fmt::format("first step after {:.2f} s\n", seconds).c_str(), stdout);
  flush_output();
}

void ProgressDisplay::epoch_done(const train::EpochReport& report) {
  const train::Metrics& m = report.train;
  std::string text =
      fmt::format("{}epoch {}/{}  loss {:.4f}  train accuracy {:.2f} %",
                  terminal_ ? "\r\033[K" : "", report.epoch + 1, epochs_, m.loss, m.accuracy * 100);
  if (report.validation)
    text += fmt::format("  test accuracy {:.2f} %", report.validation->accuracy * 100);
  text += fmt::format("  {:.2f} s  {:.0f} samples/s\n", m.seconds,
                      m.seconds > 0 ? static_cast<double>(m.samples) / m.seconds : 0);
  std::fputs(text.c_str(), stdout);
  flush_output();
}

}  // namespace arenite::cli
