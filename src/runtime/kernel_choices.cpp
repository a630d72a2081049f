#include <arenite/graph/regions.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/runtime/kernel_choices.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/names.hpp"
#include "src/plan/json_field.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr std::string_view format_name = "arenite kernel choices 1";
constexpr std::string_view what = "kernel choices, as gpu_kernels --choose writes them";
constexpr Names<DeviceKind, 2> devices{{{DeviceKind::cpu, "cpu"}, {DeviceKind::cuda, "cuda"}}};
constexpr std::array computes{Compute::float32, Compute::bfloat16, Compute::tfloat32};

DeviceKind read_device(const plan::Field& field) {
  if (const auto device = find_name(field.text(), devices)) return *device;
  field.wrong("'" + field.text() + "'", "cpu or cuda");
}

Compute read_compute(const plan::Field& field) {
  for (const Compute compute : computes) {
    if (field.text() == to_string(compute)) return compute;
  }
  field.wrong("'" + field.text() + "'", "float32, bfloat16 or tfloat32");
}

}  // namespace

std::string KernelChoices::describe(const graph::OpView& op) {
  std::string text;
  const auto add = [&](const std::string& argument) {
    text += (text.empty() ? "" : ", ") + argument;
  };
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    add(op.has_operand(i)
            ? std::string(to_string(op.operand(i).type)) + " " + to_string(op.operand(i).shape)
            : "_");
  }
  for (const auto& [name, value] : op.attributes().items())
    add(name + "=" + graph::to_string(value));
  return std::string(op.op().name()) + "(" + text + ")";
}

void KernelChoices::set(const graph::OpView& op, DeviceKind device, Compute compute,
                        std::string kernel) {
  kernels_.insert_or_assign({describe(op), device, compute}, std::move(kernel));
}

const std::string* KernelChoices::find(const graph::OpView& op, DeviceKind device,
                                       Compute compute) const {
  if (kernels_.empty()) return nullptr;
  const auto known = kernels_.find({describe(op), device, compute});
  return known == kernels_.end() ? nullptr : &known->second;
}

std::size_t KernelChoices::taken_by(const graph::Graph& graph, Compute compute) const {
  std::set<Key> taken;
  for (const graph::OpId id : graph::nested_ops(graph)) {
    const graph::Op& op = graph[id];
    for (const Compute asked : {compute, Compute::float32}) {
      const Key key{describe({graph, op}), graph::space_of(graph, op).device, asked};
      const auto choice = kernels_.find(key);
      if (choice != kernels_.end() && choice->second == op.kernel) taken.insert(key);
    }
  }
  return taken.size();
}

KernelChoices KernelChoices::read(const std::filesystem::path& file) {
  const std::string where = file.string();
  const Json document = plan::parse_document(plan::read_document(file, what), where, 3, what);
  const plan::Field root(document, "", where);
  root["format"].expect(format_name);
  KernelChoices choices;
  choices.origin_ = where;
  choices.measured_on = root["measured_on"].text();
  const plan::Field list = root["choices"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    const plan::Field entry = list[i];
    Key key{entry["op"].text(), read_device(entry["device"]), read_compute(entry["compute"])};
    if (!choices.kernels_.emplace(std::move(key), entry["kernel"].text()).second)
      entry.wrong("a second kernel for '" + entry["op"].text() + "'", "one");
  }
  return choices;
}

void KernelChoices::write(const std::filesystem::path& file) const {
  Json list = Json::list();
  for (const auto& [key, kernel] : kernels_) {
    const auto& [op, device, compute] = key;
    list.push_back({{"op", op},
                    {"device", name_of(device, devices)},
                    {"compute", to_string(compute)},
                    {"kernel", kernel}});
  }
  const Json document{
      {"format", format_name}, {"measured_on", measured_on}, {"choices", std::move(list)}};
  write_file(file, document.dump({.indent = 1}) + "\n");
}

}  // namespace arenite::runtime
