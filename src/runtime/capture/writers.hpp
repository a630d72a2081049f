// What is made of captures.
#pragma once

#include "src/runtime/capture/captured.hpp"

#include <string>

namespace arenite::runtime {

/// A trace in the JSON format of Chrome's trace viewer, which Perfetto reads, too. Times are in
/// microseconds since the first event. Process 1 has a track a worker: tasks, within them their
/// ops, and between them, as far as all that ran in between is known, what the worker waited for;
/// arrows lead to a task from the one that it waited for. Process 2 (3, … with more program sets)
/// has the memory plan: for each offset a track of its tenants, from their first access to the last
/// one, and live bytes by class as counters.
std::string to_trace_json(const CapturedProcess& captured);

/// The places that the plan gave to the values of a step, over the time that one recorded step
/// took: solid from a value's first access to the last one, pale as long as no other could have had
/// its bytes. Of the program that needs most; the step is the fastest, which was disturbed least. A
/// table says what was planned and measured of every block.
std::string to_memory_svg(const CapturedProcess& captured);

}  // namespace arenite::runtime
