#include "src/runtime/device_task.hpp"

#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <utility>

namespace arenite::runtime {
namespace {

// One in each 256 bytes, so that host and device never write the same line.
constexpr std::int64_t stride = default_alignment;

constexpr std::uint64_t told_word = ~std::uint64_t{0};

void enqueue_op(const TaskBody& body, const BoundKernel& kernel, Device::Stream stream) {
  Device& device = *body.on_device->device;
  if constexpr (checked_build) {
    for (const Claim& claim : kernel.claims) {
      if (!claim.own()) body.status->report(kernel.call.op, status_overwritten);
      if (claim.poisoned) device.fill(claim.poisoned, std::byte{0xff}, claim.size, stream);
    }
  }
  KernelCall call = kernel.call;
  call.stream = stream;
  device.call(kernel.run, call);
}

void enqueue_end(const TaskBody& body, Device::Stream stream) {
  const DeviceTask& task = *body.on_device;
  if (task.staging) return;  // the step that it is for will say what it found
  task.device->hand_on(task.status, task.failed, task.sent_from_there, stream);
}

void enqueue(TaskBody& body, Device::Stream stream) {
  DeviceTask& task = *body.on_device;
  if (!task.staging && (body.flags->failed.load() || body.status->load() != StatusWord::ok))
    task.device->hand_on(task.told, task.status, nullptr, stream);
  if (task.work) {
    task.device->launch(*task.work, stream);
  } else {
    enqueue_ops(body, stream);
  }
}

void enqueue_in_queue(void* argument) {
  TaskBody& body = *static_cast<TaskBody*>(argument);
  if (!body.flags->dry) enqueue(body, body.on_device->device->stream(body.on_device->queue()));
}

void enqueue_for_starpu(void* argument) {
  TaskBody& body = *static_cast<TaskBody*>(argument);
  if (body.flags->dry) return;
  Device& device = *body.on_device->device;
  enqueue(body, device.task_stream());
  if (device.has_cuda_worker()) return;  // StarPU looks when the stream is done, and says so
  device.finish(device.task_stream());
  end_device_task(body);
}

}  // namespace

DeviceStatus::DeviceStatus(const std::string& program, Device& device, std::size_t sets,
                           std::size_t tasks)
    : device_(&device),
      sets_(sets),
      tasks_(tasks),
      there_(program + "/status", bytes_there(sets), device.space()),
      here_(program + "/status", static_cast<std::int64_t>(sets * tasks) * stride),
      seen_there_(device.address_there(here_.data())) {
  static_assert(sizeof(StatusWord) == sizeof(std::uint64_t));
  clear();
}

std::int64_t DeviceStatus::bytes_there(std::size_t sets) noexcept {
  return static_cast<std::int64_t>(sets + 2) * stride;
}

StatusWord* DeviceStatus::at(void* words, std::size_t index) noexcept {
  return reinterpret_cast<StatusWord*>(static_cast<std::byte*>(words) +
                                       static_cast<std::int64_t>(index) * stride);
}

void DeviceStatus::clear() {
  for (std::size_t i = 0; i < sets_ * tasks_; ++i) at(here_.data(), i)->clear();
  const std::uint64_t none = StatusWord::ok;
  for (std::size_t i = 0; i <= sets_; ++i) device_->write(at(there_.data(), i), &none, sizeof none);
  device_->write(at(there_.data(), sets_ + 1), &told_word, sizeof told_word);
}

TaskBranches::TaskBranches(Device& device, std::vector<BranchedOp> placed)
    : ops(std::move(placed)), behind(ops.size()) {
  std::size_t last = 0;
  for (const BranchedOp& op : ops) {
    last = std::max(last, op.branch);
    for (const std::size_t first : op.follows) {
      if (!behind[first]) behind[first] = device.make_event();
    }
  }
  if (last > 0) begin = device.make_event();
  for (std::size_t i = 0; i < last; ++i) ends.push_back(device.make_event());
}

void enqueue_ops(TaskBody& body, Device::Stream stream) noexcept {
  for (const BoundKernel& kernel : body.kernels) enqueue_op(body, kernel, stream);
  enqueue_end(body, stream);
}

void enqueue_branches(TaskBody& body, const TaskBranches& branches,
                      Device::Stream stream) noexcept {
  Device& device = *body.on_device->device;
  const auto stream_of = [&](std::size_t branch) {
    return branch == 0 ? stream : device.branch(branch);
  };
  if (branches.begin) device.mark(*branches.begin, stream);
  for (std::size_t b = 1; b < branches.count(); ++b) device.follow(stream_of(b), *branches.begin);
  for (std::size_t i = 0; i < body.kernels.size(); ++i) {
    const BranchedOp& op = branches.ops[i];
    const Device::Stream mine = stream_of(op.branch);
    for (const std::size_t first : op.follows) device.follow(mine, *branches.behind[first]);
    enqueue_op(body, body.kernels[i], mine);
    if (branches.behind[i]) device.mark(*branches.behind[i], mine);
  }
  for (std::size_t b = 1; b < branches.count(); ++b) {
    device.mark(*branches.ends[b - 1], stream_of(b));
    device.follow(stream, *branches.ends[b - 1]);
  }
  enqueue_end(body, stream);
}

void enqueue_task(TaskBody& body) noexcept { body.order.run(enqueue_in_queue, &body); }

void end_device_task(TaskBody& body) noexcept {
  if (body.on_device->staging) return;
  const std::uint64_t word = body.on_device->sent->load();
  if (word != StatusWord::ok && word != told_word)
    body.status->report(StatusWord::op_of(word), StatusWord::code_of(word));
  if (body.last && body.status->load() != StatusWord::ok) body.flags->failed = true;
}

void run_device_task(void** /*buffers*/, void* argument) {
  static_cast<TaskBody*>(argument)->order.run(enqueue_for_starpu, argument);
}

void device_task_ended(void* argument) {
  TaskBody& body = *static_cast<TaskBody*>(argument);
  if (!body.flags->dry) end_device_task(body);
}

}  // namespace arenite::runtime
