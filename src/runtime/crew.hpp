// Many steps of a program in one go: one StarPU task a worker instead of one a task and step.
//
// StarPU takes 2 to 5 µs for each task, and the host has to wake up for each step. A crew spares
// both while steps of one program follow each other: each of its members is a StarPU task that
// holds a worker, takes the program's tasks whose predecessors have ended, and runs them, step
// after step. The edges are those that StarPU was told of, the ring's between steps included, so
// that the bits are the same either way.
//
// No member ever waits for another CPU worker's that StarPU has not begun: it would do all the work
// alone. So crews of several programs may want the same workers.
//
// A device's worker is held by a launcher, which enqueues the tasks of that device without waiting
// for them: one behind the other in a stream, a step behind the step before it, so that the device
// never waits for the host. What follows elsewhere follows when the device is done.
#pragma once

#include <arenite/graph/passes.hpp>

#include "src/runtime/program_impl.hpp"
#include "src/runtime/spin.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <tuple>
#include <vector>

namespace arenite::runtime {

class Launcher;

/// An int64 input by task set, and its numbers.
struct CountedInput {
  const std::vector<void*>* addresses = nullptr;  ///< none: there is no such input
  std::int64_t first = 0, stride = 0;
};

/// Which steps, and until when.
struct CrewOrder {
  long count = 1;             ///< steps at most, at least 1
  long first_step = 0;        ///< number of the first
  std::size_t first_set = 0;  ///< its task set
  std::array<CountedInput, std::tuple_size_v<decltype(RunRequest::counters)>> counted = {};
  const std::atomic<bool>* stop = nullptr;  ///< no more steps are begun when it turns true
  std::int64_t until = 0;                   ///< nor when StepRecords::now() is past this; 0: never
};

class Crew {
 public:
  /// For task sets that are built, of which none is under way.
  Crew(std::deque<TaskSet>& sets, const graph::Schedule& schedule, ProgramFlags& flags,
       std::size_t workers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Blocks until the last step has ended; no other may be under way. Returns how many there were:
  /// fewer than asked for when stopped, or when one failed. Allocates nothing. Throws Error when
  /// StarPU refuses a member.
  long run(const CrewOrder& order);

 private:
  friend class Launcher;

  /// A task of one set, ready to run.
  struct Item {
    std::uint32_t set = 0, task = 0;
    float urgency = 0;
  };
  static constexpr std::uint32_t no_task = ~std::uint32_t{0};

  /// Of tasks that are ready; among equally urgent ones the first comes first. Room for every task
  /// of every set.
  class Queue {
   public:
    void reserve(std::size_t capacity) { items_.resize(capacity); }
    void push(Item item) noexcept;
    bool pop_most_urgent(Item& item) noexcept { return pop(true, item); }
    bool pop_least_urgent(Item& item) noexcept { return pop(false, item); }
    /// Gives the most urgent task for a less urgent `item`.
    void exchange(Item& item) noexcept;

   private:
    bool pop(bool most_urgent, Item& item) noexcept;
    void insert(Item item) noexcept;

    Spinlock lock_;
    std::atomic<std::size_t> count_{0};
    std::vector<Item> items_;  // the most urgent last
  };

  /// A task, alike in all sets.
  struct Node {
    std::vector<std::uint32_t> successors;  ///< that follow its end
    std::vector<std::uint32_t> behind;      ///< in the same stream: they follow its launch
    Launcher* launcher = nullptr;           ///< of the device that it runs on; none: the CPU
    int needs = 0;         ///< ends of other tasks: predecessors, and the step before
    std::size_t home = 0;  ///< the member that should run it: what it reads is in that one's cache
    float urgency = 0;     ///< microseconds from its begin to the step's end, if nothing waits
    int lane = graph::Op::shared_lane;  ///< whose own task it is, no part of an update
    bool staging = false;
  };

  struct alignas(64) Member {
    Crew* crew = nullptr;
    std::size_t number = 0;
    Queue ready, staging;  ///< what is at home here; others help themselves when idle
  };

  static void run_member(void** buffers, void* argument);
  void work(const Member& self) noexcept;
  void link();
  void make_launchers();
  void make_members(std::size_t count);
  starpu_task* new_task(starpu_codelet& codelet, void* argument, int worker);
  bool in_one_stream(std::uint32_t a, std::uint32_t b) const noexcept;
  std::size_t find_homes(const graph::Schedule& schedule, std::size_t workers);
  void find_urgencies(const graph::Schedule& schedule);
  void begin(const CrewOrder& order) noexcept;
  void arm(std::size_t set) noexcept;
  void release_entries(std::size_t set, Item* next, std::size_t member) noexcept;
  void release_chained(std::size_t set) noexcept;
  void release(std::size_t set, std::uint32_t task, Item* next, std::size_t member) noexcept;
  Item item(std::size_t set, std::uint32_t task) const noexcept;
  void push(Item item) noexcept;
  bool take(std::size_t member, Item& item) noexcept;
  bool goes_on(Item item, Item next) const noexcept;
  bool perform(Item& item, std::size_t member) noexcept;
  void finish(std::size_t set, Item* next, std::size_t member) noexcept;
  bool may_begin_another() const noexcept;
  void submit_and_wait();

  std::deque<TaskSet>& sets_;
  ProgramFlags& flags_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> roots_;
  std::vector<std::uint32_t> entries_;  // that follow the end of the step before
  std::vector<std::uint32_t> chained_;  // those that follow its launch
  std::uint32_t end_ = 0;
  std::vector<std::unique_ptr<std::atomic<int>[]>> pending_;  // [set][task]
  starpu_codelet codelet_{};
  std::deque<Member> members_;
  std::vector<std::unique_ptr<Launcher>> launchers_;  // one for each device
  std::vector<starpu_task*> tasks_;                   // of members and launchers

  // Of the run under way. Steps end one after another, so whoever ends one may write these.
  CrewOrder order_;
  long armed_ = 0;  // steps whose inputs may be filled
  long ended_ = 0;
  std::atomic<bool> finished_{true};
  OrderPoint begun_, left_;  // for the race checker: StarPU's own order is hidden from it
};

}  // namespace arenite::runtime
