#include "src/runtime/capture/captured.hpp"

#include <algorithm>
#include <limits>

namespace arenite::runtime {

Wait wait_of(const CapturedProgram& program, std::size_t index, std::size_t task) {
  const CaptureShape& shape = program.shape;
  const RecordedStep& step = program.steps[index];
  const StepShape::Task& shaped = shape.steps.tasks[task];
  Wait wait{.reason = Wait::For::nothing, .ready = std::numeric_limits<std::int64_t>::min()};
  const auto consider = [&](Wait::For reason, std::int64_t end, std::size_t before = 0) {
    if (end > wait.ready) wait = {.reason = reason, .task = before, .ready = end};
  };
  for (const std::size_t before : shaped.before) {
    const auto& reuse = shape.tasks[task].reuse;
    const bool takes_bytes = std::any_of(reuse.begin(), reuse.end(),
                                         [&](const auto& edge) { return edge.before == before; });
    consider(takes_bytes ? Wait::For::reuse : Wait::For::data, step.runs[before].time().end,
             before);
  }
  const auto end_of = [&](std::size_t back) {
    return program.steps[index - back].runs[shape.steps.end].time().end;
  };
  if (shaped.entry && index >= 1) consider(Wait::For::step, end_of(1));
  if (index >= shape.steps.task_sets) consider(Wait::For::task_set, end_of(shape.steps.task_sets));
  if (step.submitted > 0) consider(Wait::For::submission, step.submitted);
  return wait;
}

Span lifetime(const CaptureShape& shape, const RecordedStep& step, std::size_t tenant) {
  Span span{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const CaptureShape::Touch& touch : shape.tenants[tenant].touches) {
    const Span op = step.runs[touch.task].of_op(touch.op);
    span = {std::min(span.begin, op.begin), std::max(span.end, op.end)};
  }
  return span;
}

Span duration(const CaptureShape& shape, const RecordedStep& step) {
  Span span{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (std::size_t t = 0; t < step.runs.size(); ++t) {
    const Span time = step.runs[t].time();
    if (!shape.steps.tasks[t].staging) span.begin = std::min(span.begin, time.begin);
    span.end = std::max(span.end, time.end);
  }
  span.begin = std::min(span.begin, span.end);  // staging alone
  return span;
}

std::size_t clashes(const CapturedProgram& program) {
  const auto& tenants = program.shape.tenants;
  std::size_t count = 0;
  std::vector<Span> alive(tenants.size());
  for (const RecordedStep& step : program.steps) {
    for (std::size_t i = 0; i < tenants.size(); ++i) alive[i] = lifetime(program.shape, step, i);
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool bytes = tenants[i].block == tenants[j].block &&
                           tenants[i].offset < tenants[j].offset + tenants[j].bytes &&
                           tenants[j].offset < tenants[i].offset + tenants[i].bytes;
        if (bytes && alive[i].begin < alive[j].end && alive[j].begin < alive[i].end) ++count;
      }
    }
  }
  return count;
}

}  // namespace arenite::runtime
