// What a task does: its ops, one after another.
#pragma once

namespace arenite::runtime {

/// What StarPU calls for every task of ours; `body` is its TaskBody.
void run_task(void** buffers, void* body);

}  // namespace arenite::runtime
