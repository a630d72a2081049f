#include <arenite/runtime/profile.hpp>

#include "src/base/json.hpp"
#include "src/base/words.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ostream>

namespace arenite::runtime {
namespace {

std::string row(const std::string& name, const Profile& profile, const TimeParts& parts) {
  const auto total = static_cast<double>(std::max<std::int64_t>(1, parts.total()));
  std::string text = fmt::format("  {:<8}", name);
  for (std::int64_t part : {parts.kernels, parts.staging, parts.runtime, parts.idle}) {
    text += fmt::format(" {:>10.1f} {:>5.1f} %", profile.per_step(part),
                        100 * static_cast<double>(part) / total);
  }
  return text + fmt::format(" {:>11.1f}\n", profile.per_step(parts.total()));
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Profile& profile) {
  out << fmt::format("where {} of '{}' went: {:.1f} µs a step on {}\n",
                     counted(profile.steps, "step"), profile.program,
                     profile.per_step(profile.wall),
                     counted(std::ssize(profile.workers), "worker"));
  out << fmt::format("  {:<8} {:>18} {:>18} {:>18} {:>18} {:>11}\n", "worker", "kernels", "staging",
                     "runtime", "idle", "µs a step");
  for (std::size_t i = 0; i < profile.workers.size(); ++i)
    out << row(std::to_string(i), profile, profile.workers[i]);
  const TimeParts all = profile.all();
  if (profile.workers.size() > 1) out << row("all", profile, all);
  out << fmt::format(
      "  {:.1f} % of the runtime's part passed before the host submitted the step; in {:.1f} % of "
      "the idle time a\n  task, ready and submitted, waited for another worker; a reading of the "
      "clock takes {:.0f} ns\n",
      percent(profile.unsubmitted, all.runtime), percent(profile.beside_ready, all.idle),
      profile.clock);
  std::size_t op_width = 2, where_width = 5, kernel_width = 6;
  for (const OpTime& op : profile.ops) {
    op_width = std::max(op_width, op.op.size());
    where_width = std::max(where_width, op.where.size());
    kernel_width = std::max(kernel_width, op.kernel.size());
  }
  out << fmt::format("  {:<{}} {:<{}} {:<{}} {:>10} {:>7} {:>8}\n", "op", op_width, "where",
                     where_width, "kernel", kernel_width, "µs a step", "share", "GFLOP/s");
  for (const OpTime& op : profile.ops) {
    out << fmt::format("  {:<{}} {:<{}} {:<{}} {:>10.1f} {:>5.1f} % {:>8}\n", op.op, op_width,
                       op.where, where_width, op.kernel, kernel_width, op.microseconds,
                       100 * op.share, op.gflops > 0 ? fmt::format("{:.1f}", op.gflops) : "-");
  }
  return out;
}

std::string to_json(const Profile& profile) {
  const TimeParts all = profile.all();
  Json ops = Json::list();
  for (const OpTime& op : profile.ops) {
    ops.push_back({{"op", op.op},
                   {"kernel", op.kernel},
                   {"where", op.where},
                   {"us_per_step", op.microseconds},
                   {"share", op.share},
                   {"gflops", op.gflops}});
  }
  return Json{{"program", profile.program},
              {"steps", profile.steps},
              {"workers", profile.workers.size()},
              {"wall_us", static_cast<double>(profile.wall) * 1e-3},
              {"clock_ns", profile.clock},
              {"us_per_step",
               {{"kernels", profile.per_step(all.kernels)},
                {"staging", profile.per_step(all.staging)},
                {"runtime", profile.per_step(all.runtime)},
                {"idle", profile.per_step(all.idle)},
                {"unsubmitted", profile.per_step(profile.unsubmitted)},
                {"beside_ready", profile.per_step(profile.beside_ready)}}},
              {"ops", std::move(ops)}}
      .dump();
}

TimeParts& TimeParts::operator+=(const TimeParts& other) noexcept {
  kernels += other.kernels;
  staging += other.staging;
  idle += other.idle;
  runtime += other.runtime;
  return *this;
}

TimeParts Profile::all() const noexcept {
  TimeParts sum;
  for (const TimeParts& worker : workers) sum += worker;
  return sum;
}

double Profile::per_step(std::int64_t nanoseconds) const noexcept {
  return steps == 0 ? 0 : static_cast<double>(nanoseconds) * 1e-3 / static_cast<double>(steps);
}

}  // namespace arenite::runtime
