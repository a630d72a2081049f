#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/graph/target.hpp>

#include "src/base/words.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

Cost cost_of(const OpView& op) {
  if (op.op().definition->cost) return op.op().definition->cost(op);
  Cost cost;
  const auto count = [&](ValueId id) {
    if (!id) return;
    cost.bytes += static_cast<double>(byte_size(op.graph()[id].type, op.graph()[id].shape));
  };
  std::for_each(op.op().operands.begin(), op.op().operands.end(), count);
  std::for_each(op.op().results.begin(), op.op().results.end(), count);
  return cost;
}

}  // namespace

double TargetProfile::microseconds(const OpView& op) const {
  const Cost cost = cost_of(op);
  const bool gpu = space_of(op.graph(), op.op()).device != DeviceKind::cpu;
  const Rates& rates = gpu ? gpu_kernels : kernels;
  std::string kernel = std::string(op.op().name()) + "/" + op.op().kernel;
  auto known = rates.find(kernel);
  if (known == rates.end() && kernel.ends_with(bfloat16_suffix)) {
    kernel.resize(kernel.size() - bfloat16_suffix.size());
    known = rates.find(kernel);
  }
  if (known == rates.end()) known = rates.find("*/" + op.op().kernel);
  const KernelRate& rate = known != rates.end() ? known->second : gpu ? on_gpu : otherwise;
  // Arithmetic and memory overlap: the slower of the two decides.
  return (gpu ? gpu_op_microseconds : op_microseconds) +
         std::max(cost.flops / rate.gflops, cost.bytes / rate.gigabytes) * 1e-3;
}

std::string to_string(const BatchCut& cut, int at_once) {
  if (cut.shards == 1) return counted(cut.lanes, "lane");
  std::string text = counted(cut.shards, "shard");
  if (cut.lanes > 1) text += " of " + counted(cut.lanes, "lane");
  if (at_once < cut.shards) text += ", " + digits(at_once) + " at once";
  return text;
}

BatchCut TargetProfile::cut(double step_microseconds) const noexcept {
  if (step_microseconds < two_lanes_microseconds) return {};
  return step_microseconds < four_shards_microseconds ? BatchCut{.lanes = 2}
                                                      : BatchCut{.shards = 4};
}

double estimate(const Graph& graph, const TargetProfile& target,
                const std::function<bool(OpId)>& counts) {
  double all = 0;
  for (const OpId id : graph[Graph::body].ops) {
    if (!is_view_op(graph, id) && !is_staging(graph, id) && (!counts || counts(id)))
      all += target.microseconds({graph, graph[id]});
  }
  return all;
}

void check(const TargetProfile& target) {
  const auto number = [](double value) { return to_string(AttributeValue(value)); };
  const auto check_rate = [&](const std::string& kernel, const KernelRate& rate) {
    if (rate.gflops > 0 && rate.gigabytes > 0) return;  // NaN is refused too
    fail({.found =
              number(rate.gflops) + " GFLOP/s and " + number(rate.gigabytes) + " GB/s of " + kernel,
          .expected = "rates above 0",
          .where = "target profile '" + target.name + "'"});
  };
  check_rate("other kernels", target.otherwise);
  check_rate("other kernels on a GPU", target.on_gpu);
  check_rate("what another worker has written", {.gigabytes = target.handover_gigabytes});
  for (const auto& [kernel, rate] : target.kernels) check_rate("'" + kernel + "'", rate);
  for (const auto& [kernel, rate] : target.gpu_kernels)
    check_rate("'" + kernel + "' on a GPU", rate);
  for (const double time :
       {target.op_microseconds, target.gpu_op_microseconds, target.task_microseconds,
        target.phase_microseconds, target.meeting_microseconds, target.two_lanes_microseconds,
        target.four_shards_microseconds}) {
    if (time >= 0) continue;
    fail({.found = "a time of " + number(time) + " µs",
          .expected = "times of at least 0",
          .where = "target profile '" + target.name + "'"});
  }
}

const TargetProfile& default_target() {
  // Operations count as the definitions do: fused gradients visit the living winners only, and
  // Winograd saves multiplications, so that these are rates of finished work.
  static const TargetProfile target{
      .name = "avx512",
      // "*": of any operator.
      .kernels = {{"*/fused", {50, 30}},
                  {"*/tiles", {50, 30}},
                  {"assign/plain", {60, 40}},
                  {"avg_pool2d/plain", {12, 60}},
                  {"avg_pool2d_grad/plain", {5, 30}},
                  {"bias_grad/plain", {4, 20}},
                  {"complex_mul/plain", {15, 40}},
                  {"complex_mul_grad_right/plain", {15, 40}},
                  {"conv2d/direct", {40, 60}},
                  {"conv2d/plain", {3, 60}},
                  {"conv2d/winograd", {230, 60}},
                  {"conv2d/xsmm", {110, 60}},
                  {"conv2d_grad_input/plain", {3, 60}},
                  {"conv2d_grad_input/winograd", {230, 60}},
                  {"conv2d_grad_input/xsmm", {110, 60}},
                  {"conv2d_grad_input_relu/plain", {3, 60}},
                  {"conv2d_grad_input_relu/winograd", {230, 60}},
                  {"conv2d_grad_input_relu/xsmm", {110, 60}},
                  {"conv2d_grad_weight/direct", {40, 60}},
                  {"conv2d_grad_weight/plain", {3, 60}},
                  {"conv2d_grad_weight/xsmm", {110, 60}},
                  {"conv2d_relu/direct", {40, 60}},
                  {"conv2d_relu/plain", {3, 60}},
                  {"conv2d_relu/winograd", {230, 60}},
                  {"conv2d_relu/xsmm", {110, 60}},
                  {"conv2d_relu_max_pool2d/direct", {70, 60}},
                  {"conv2d_relu_max_pool2d/plain", {3, 60}},
                  {"conv2d_relu_max_pool2d/winograd", {200, 60}},
                  {"conv2d_relu_max_pool2d/xsmm", {100, 60}},
                  {"conv2d_relu_max_pool2d_grad_input/plain", {1, 60}},
                  {"conv2d_relu_max_pool2d_grad_input/sparse", {90, 60}},
                  {"conv2d_relu_max_pool2d_grad_input/xsmm", {28, 60}},
                  {"conv2d_relu_max_pool2d_grad_input_relu/plain", {1, 60}},
                  {"conv2d_relu_max_pool2d_grad_input_relu/sparse", {90, 60}},
                  {"conv2d_relu_max_pool2d_grad_input_relu/xsmm", {28, 60}},
                  {"conv2d_relu_max_pool2d_grad_weight/plain", {1, 60}},
                  {"conv2d_relu_max_pool2d_grad_weight/sparse", {90, 60}},
                  {"conv2d_relu_max_pool2d_grad_weight/sparse_patch", {32, 60}},
                  {"conv2d_relu_max_pool2d_grad_weight/xsmm", {28, 60}},
                  {"dense/direct", {75, 60}},
                  {"dense/plain", {8, 60}},
                  {"dense/xsmm", {75, 60}},
                  {"dense_grad_input/direct", {60, 60}},
                  {"dense_grad_input/plain", {8, 60}},
                  {"dense_grad_input/xsmm", {80, 60}},
                  {"dense_grad_input_relu/direct", {60, 60}},
                  {"dense_grad_input_relu/plain", {8, 60}},
                  {"dense_grad_input_relu/xsmm", {80, 60}},
                  {"dense_grad_weight/plain", {8, 60}},
                  {"dense_grad_weight/xsmm", {80, 60}},
                  {"dense_grad_weight_sgd/direct", {60, 60}},
                  {"dense_grad_weight_sgd/plain", {8, 60}},
                  {"dense_grad_weight_sgd/xsmm", {70, 60}},
                  {"dense_relu/direct", {75, 60}},
                  {"dense_relu/plain", {8, 60}},
                  {"dense_relu/xsmm", {75, 60}},
                  {"draw/plain", {60, 12}},
                  {"identity/plain", {60, 40}},
                  {"join_columns/plain", {60, 30}},
                  {"matmul/plain", {8, 60}},
                  {"matmul/xsmm", {75, 60}},
                  {"max_pool2d/direct", {7, 40}},
                  {"max_pool2d/plain", {5, 30}},
                  {"max_pool2d_grad/direct", {5, 30}},
                  {"max_pool2d_grad/plain", {5, 30}},
                  {"multi_sgd/plain", {60, 30}},
                  {"replace_slice/plain", {60, 40}},
                  {"sliced_softmax/plain", {20, 60}},
                  {"sliced_softmax_grad/plain", {15, 40}},
                  {"softmax_cross_entropy/plain", {3, 60}},
                  {"stack_columns/plain", {60, 30}}},
      .otherwise = {60, 40}};
  return target;
}

}  // namespace arenite::graph
