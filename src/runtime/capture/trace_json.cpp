// The format: "Trace Event Format" of Chrome's trace viewer (docs.google.com, Duffy and Sinclair).
#include "src/base/json.hpp"
#include "src/runtime/capture/timeline.hpp"
#include "src/runtime/capture/writers.hpp"
#include "src/runtime/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr int steps_track = 0;  // of the first process; worker w has track w + 1
constexpr int tasks_process = 1;

class Writer {
 public:
  explicit Writer(const CapturedProcess& captured)
      : captured_(captured), first_(first_begin(captured)) {}

  std::string write() {
    name_process(tasks_process, "Arenite: tasks");
    name_track(tasks_process, steps_track, "steps", -1);
    for (const CapturedSet& set : captured_.sets) {
      const int process = tasks_process + static_cast<int>(set.number);
      name_process(process,
                   one_set() ? "Arenite: memory plan"
                             : "Arenite: memory plan of program set " + std::to_string(set.number));
      for (const CapturedProgram& program : set.programs) {
        add_steps(set, program);
        add_tenants(process, program);
        add_counters(process, program);
      }
    }
    const auto workers = timeline(captured_);
    workers_ = workers.size();
    for (std::size_t worker = 0; worker < workers_; ++worker) {
      name_track(tasks_process, track_of(static_cast<int>(worker)),
                 "worker " + std::to_string(worker), static_cast<int>(worker));
      for (const TimelineTask& task : workers[worker]) add_task(task);
    }
    return Json{
        {"displayTimeUnit", "ns"}, {"otherData", summary()}, {"traceEvents", std::move(events_)}}
        .dump();
  }

 private:
  bool one_set() const { return captured_.forgotten == 0 && captured_.sets.size() == 1; }
  static int track_of(int worker) { return worker + 1; }
  double at(std::int64_t time) const { return static_cast<double>(time - first_) * 1e-3; }
  static double microseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-3;
  }

  void name_process(int process, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}});
  }
  void name_track(int process, int track, const std::string& name, int place) {
    const auto say = [&](const char* what, Json args) {
      events_.push_back({{"ph", "M"},
                         {"name", what},
                         {"pid", process},
                         {"tid", track},
                         {"args", std::move(args)}});
    };
    say("thread_name", {{"name", name}});
    say("thread_sort_index", {{"sort_index", place}});
  }
  void slice(int process, int track, const std::string& name, std::string_view category, Span time,
             Json args) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"cat", category},
                       {"pid", process},
                       {"tid", track},
                       {"ts", at(time.begin)},
                       {"dur", microseconds(time.length())},
                       {"args", std::move(args)}});
  }

  /// "data of forward conv2 (lane 1)"
  static std::string reason(const CaptureShape& shape, std::size_t task, const Wait& wait) {
    switch (wait.reason) {
      case Wait::For::nothing:
        return "the steps before, which were not recorded";
      case Wait::For::data:
        return "data of " + shape.tasks[wait.task].name;
      case Wait::For::reuse:
        for (const auto& edge : shape.tasks[task].reuse) {
          if (edge.before == wait.task)
            return "bytes of " + shape.tasks[wait.task].name + ": " + edge.bytes;
        }
        break;
      case Wait::For::step:
        return "the end of the step before";
      case Wait::For::task_set:
        return "the last step of the same task set";
      case Wait::For::submission:
        return "the host to submit the step";
    }
    return "another task";
  }

  void add_steps(const CapturedSet& set, const CapturedProgram& program) {
    const std::string& name = program.shape.steps.program;
    for (const RecordedStep& step : program.steps) {
      slice(tasks_process, steps_track, name + " step " + std::to_string(step.number), "step",
            duration(program.shape, step), step_of(set, name, step));
    }
  }

  static Json step_of(const CapturedSet& set, const std::string& program,
                      const RecordedStep& step) {
    return {{"set", set.number}, {"program", program}, {"step", step.number}};
  }

  void add_task(const TimelineTask& at_worker) {
    const CapturedProgram& program = *at_worker.program;
    const CaptureShape& shape = program.shape;
    const std::size_t t = at_worker.task;
    const RecordedStep& step = program.steps[at_worker.step];
    const RecordedStep::Run& run = step.runs[t];
    const CaptureShape::Task& task = shape.tasks[t];
    const StepShape::Task& shaped = shape.steps.tasks[t];
    const Span time = run.time();
    const Wait wait = wait_of(program, at_worker.step, t);
    const std::string why = reason(shape, t, wait);
    const int track = track_of(run.worker);
    const std::int64_t ready = std::clamp(wait.ready, at_worker.free_since, time.begin);
    gap(track, "idle: waits for " + why, "idle", {at_worker.free_since, ready});
    gap(track, "runtime: a task is ready", "runtime", {ready, time.begin});

    Json args = step_of(*at_worker.set, shape.steps.program, step);
    args["phase"] = to_string(task.phase);
    args["task"] = t;
    if (task.lane >= 0) args["lane"] = task.lane;
    args["waited_for"] = why;
    if (wait.reason != Wait::For::nothing) {
      args["ready_us"] = at(wait.ready);
      args["begun_us_after_ready"] = microseconds(time.begin - wait.ready);
    }
    args["planned_us"] = task.microseconds;
    slice(tasks_process, track, task.name, shaped.staging ? "staging" : to_string(task.phase), time,
          std::move(args));
    for (std::size_t i = 0; i < shaped.ops.size(); ++i)
      add_op(shape, shaped.ops[i], track, run.of_op(i));
    if ((wait.reason == Wait::For::data || wait.reason == Wait::For::reuse) &&
        step.runs[wait.task].worker != run.worker)
      arrow(step.runs[wait.task], track, time.begin);
  }

  void gap(int track, const std::string& name, std::string_view category, Span time) {
    constexpr std::int64_t least =
        100;  // shorter ones cannot be seen, and are readings of the clock
    if (time.length() >= least) slice(tasks_process, track, name, category, time, {});
  }

  void add_op(const CaptureShape& shape, std::size_t row, int track, Span time) {
    const StepShape::Row& op = shape.steps.ops[row];
    const CaptureShape::Traffic& traffic = shape.traffic[row];
    Json args{
        {"kernel", op.kernel}, {"bytes_read", traffic.read}, {"bytes_written", traffic.written}};
    const auto length = static_cast<double>(std::max<std::int64_t>(1, time.length()));
    if (op.flops > 0) {
      args["flops"] = op.flops;
      args["gflops_per_second"] = op.flops / length;
    }
    args["gigabytes_per_second"] = static_cast<double>(traffic.read + traffic.written) / length;
    slice(tasks_process, track, op.where.empty() ? op.op : op.op + " " + op.where, "op", time,
          std::move(args));
  }

  /// From the end of a task to the begin of the one that waited for it.
  void arrow(const RecordedStep::Run& before, int track, std::int64_t begin) {
    const Span time = before.time();
    const auto end = [&](const char* kind, int on, std::int64_t when) {
      return Json{{"ph", kind},           {"name", "waits for"}, {"cat", "wait"}, {"id", arrows_},
                  {"pid", tasks_process}, {"tid", on},           {"ts", at(when)}};
    };
    events_.push_back(end("s", track_of(before.worker), std::max(time.begin, time.end - 1)));
    events_.push_back(end("f", track, begin));
    events_.back()["bp"] = "e";
    ++arrows_;
  }

  void add_tenants(int process, const CapturedProgram& program) {
    const CaptureShape& shape = program.shape;
    for (std::size_t i = 0; i < shape.tenants.size(); ++i) {
      const CaptureShape::Tenant& tenant = shape.tenants[i];
      const std::string& block = shape.blocks[tenant.block].name;
      const auto [place, is_new] = places_.try_emplace({process, block, tenant.offset},
                                                       1 + static_cast<int>(places_.size()));
      if (is_new) {
        // Tracks in the order of addresses; those of one block side by side.
        name_track(process, place->second, block + " at " + std::to_string(tenant.offset),
                   static_cast<int>(tenant.offset / default_alignment));
      }
      for (const RecordedStep& step : program.steps) {
        slice(process, place->second, tenant.name, tenant.label, lifetime(shape, step, i),
              {{"program", shape.steps.program},
               {"step", step.number},
               {"block", block},
               {"offset", tenant.offset},
               {"bytes", tenant.bytes},
               {"class", tenant.label},
               {"phase", to_string(tenant.phase)}});
      }
    }
  }

  /// Live bytes of each block, by class.
  void add_counters(int process, const CapturedProgram& program) {
    const CaptureShape& shape = program.shape;
    for (std::size_t b = 0; b < shape.blocks.size(); ++b) {
      std::map<std::string, std::int64_t> live;
      std::vector<std::pair<std::int64_t, std::pair<std::string, std::int64_t>>> changes;
      for (std::size_t i = 0; i < shape.tenants.size(); ++i) {
        const CaptureShape::Tenant& tenant = shape.tenants[i];
        if (tenant.block != b) continue;
        live[tenant.label] = 0;
        for (const RecordedStep& step : program.steps) {
          const Span alive = lifetime(shape, step, i);
          changes.push_back({alive.begin, {tenant.label, tenant.bytes}});
          changes.push_back({alive.end, {tenant.label, -tenant.bytes}});
        }
      }
      std::ranges::sort(changes);
      for (std::size_t i = 0; i < changes.size(); ++i) {
        live[changes[i].second.first] += changes[i].second.second;
        if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
        Json args;
        for (const auto& [label, bytes] : live) args[label] = bytes;
        events_.push_back({{"ph", "C"},
                           {"name", shape.blocks[b].name + ": live bytes"},
                           {"pid", process},
                           {"ts", at(changes[i].first)},
                           {"args", std::move(args)}});
      }
    }
  }

  /// What no event says.
  Json summary() const {
    Json programs = Json::list(), blocks = Json::list(), missing = Json::list();
    for (const CapturedSet& set : captured_.sets) {
      for (const CapturedProgram& program : set.programs) {
        Json planned = Json::list();
        for (const CaptureShape::Block& block : program.shape.blocks) {
          planned.push_back({{"block", block.name},
                             {"peak", block.peak},
                             {"lower_bound", block.lower_bound},
                             {"optimal", block.optimal}});
        }
        programs.push_back({{"set", set.number},
                            {"program", program.shape.steps.program},
                            {"tasks", program.shape.tasks.size()},
                            {"steps_recorded", program.steps.size()},
                            {"steps_before", program.steps.front().number},
                            {"tenants_that_met", clashes(program)},
                            {"plan", std::move(planned)}});
      }
      for (const CapturedBlock& block : set.blocks) {
        blocks.push_back({{"set", set.number},
                          {"block", block.name},
                          {"bytes", block.bytes},
                          {"resident", block.resident}});
        if (block.touched >= 0) blocks.back()["touched"] = block.touched;
      }
      for (const std::string& program : set.on_devices) missing.push_back(program);
    }
    return {{"process", getpid()},
            {"command", command_line()},
            {"program_sets_forgotten", captured_.forgotten},
            {"programs", std::move(programs)},
            {"blocks", std::move(blocks)},
            {"workers", workers_},
            {"on_gpus_not_recorded", std::move(missing)}};
  }

  const CapturedProcess& captured_;
  std::int64_t first_;
  Json events_ = Json::list();
  std::size_t workers_ = 0;
  int arrows_ = 0;
  std::map<std::tuple<int, std::string, std::int64_t>, int> places_;  // tracks of tenants
};

}  // namespace

std::string to_trace_json(const CapturedProcess& captured) { return Writer(captured).write(); }

}  // namespace arenite::runtime
