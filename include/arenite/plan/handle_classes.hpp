// Handle classes: which contiguous bytes share one StarPU handle.
//
// StarPU takes a lock per handle and holds at most 8 handles in a task, and two handles over the
// same bytes are invisible to each other. So blocks are partitioned: every byte belongs to one
// class, and bytes accessed by the same tasks in the same way are merged, until no task needs more
// than `limit` classes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace arenite::plan {

struct HandleAccess {
  std::size_t block = 0;
  std::int64_t begin = 0, end = 0;  ///< bytes in the block
  std::size_t task = 0;             ///< numbered over all programs that share the blocks
  bool writes = false;
};

struct HandleClass {
  std::size_t block = 0;
  std::int64_t begin = 0, end = 0;
  /// Every two tasks of which one writes it are ordered. A class that merges bytes of tasks that
  /// run side by side is not: it must be declared as read, for StarPU's reader-writer lock would
  /// serialise those tasks, and allocate a request each time one of them has to wait.
  bool ordered = true;
};

struct HandleProblem {
  std::vector<std::int64_t> block_bytes;
  std::vector<HandleAccess> accesses;
  std::size_t task_count = 0;
  std::size_t limit = 8;
  /// True when the two tasks can never run at the same time.
  std::function<bool(std::size_t, std::size_t)> ordered;
};

/// A partition of every block (empty blocks have none), in address order, such that no task touches
/// more than `limit` classes. Throws Error when a task touches more than `limit` blocks.
std::vector<HandleClass> handle_classes(const HandleProblem& problem);

}  // namespace arenite::plan
