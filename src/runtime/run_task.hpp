// What a task does: its ops, one after another.
#pragma once

namespace arenite::runtime {

struct TaskBody;

/// On the worker that calls it.
void run_body(TaskBody& body) noexcept;

/// What StarPU calls for every task of ours; `body` is its TaskBody.
void run_task(void** buffers, void* body);

}  // namespace arenite::runtime
