#include <arenite/error.hpp>
#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>

#include "src/base/names.hpp"

namespace arenite::graph {
namespace {

constexpr Names<StorageClass, 9> class_names{{
    {StorageClass::parameter, "parameter"},
    {StorageClass::optimizer_state, "optimizer_state"},
    {StorageClass::buffer, "buffer"},
    {StorageClass::constant, "constant"},
    {StorageClass::input, "input"},
    {StorageClass::output, "output"},
    {StorageClass::activation, "activation"},
    {StorageClass::gradient, "gradient"},
    {StorageClass::workspace, "workspace"},
}};

}  // namespace

std::string_view to_string(StorageClass cls) noexcept { return name_of(cls, class_names); }

StorageClass parse_storage_class(std::string_view text) {
  if (const auto cls = find_name(text, class_names)) return *cls;
  fail({.found = "unknown storage class '" + std::string(text) + "'",
        .expected = "parameter, optimizer_state, buffer, constant, input, output, activation, "
                    "gradient or workspace"});
}

bool is_persistent(StorageClass cls) noexcept {
  return cls == StorageClass::parameter || cls == StorageClass::optimizer_state ||
         cls == StorageClass::buffer;
}

bool is_transient(StorageClass cls) noexcept {
  return cls == StorageClass::output || cls == StorageClass::activation ||
         cls == StorageClass::gradient || cls == StorageClass::workspace;
}

std::int64_t byte_size(DType type, const Shape& shape, const Layout& layout) {
  if (layout.halo == 0) return shape.elements() * size_of(type);
  if (shape.rank() != 4 || layout.halo < 0) {
    fail({.found = "a halo of " + std::to_string(layout.halo) + " on a value of shape " +
                   to_string(shape),
          .expected = "a halo of at least 0, on NHWC values of rank 4 only"});
  }
  const std::int64_t rim = 2 * std::int64_t{layout.halo};
  return Shape{shape[0], shape[1] + rim, shape[2] + rim, shape[3]}.elements() * size_of(type);
}

std::string_view Op::name() const noexcept {
  return definition ? std::string_view(definition->name) : "?";
}

Graph::Graph() { regions_.emplace_back(); }

StorageId Graph::root(StorageId id) const {
  while (storages_.at(id.index).merged_into) id = storages_[id.index].merged_into;
  return id;
}

StorageId Graph::add_storage(Storage storage) {
  storages_.push_back(std::move(storage));
  return StorageId(storages_.size() - 1);
}

ValueId Graph::add_value(Value value) {
  values_.push_back(std::move(value));
  return ValueId(values_.size() - 1);
}

OpId Graph::add_op(Op op, RegionId region) {
  const OpId id(ops_.size());
  for (ValueId result : op.results) values_.at(result.index).producer = id;
  ops_.push_back(std::move(op));
  regions_.at(region.index).ops.push_back(id);
  return id;
}

RegionId Graph::add_region() {
  regions_.emplace_back();
  return RegionId(regions_.size() - 1);
}

void Graph::merge(StorageId from, StorageId into) {
  // Shortens the paths it walks, so that long chains of merges stay near-linear.
  const auto root_of = [this](StorageId id) {
    const StorageId end = root(id);
    while (id != end) {
      const StorageId next = storages_[id.index].merged_into;
      storages_[id.index].merged_into = end;
      id = next;
    }
    return end;
  };
  from = root_of(from);
  into = root_of(into);
  if (from == into) return;
  const Storage& source = storage(from);
  const Storage& target = storage(into);
  if (source.space != target.space || source.bytes > target.bytes) {
    fail({.found = "storage '" + source.name + "' (" + std::to_string(source.bytes) + " bytes, " +
                   to_string(source.space) + ") merged into '" + target.name + "' (" +
                   std::to_string(target.bytes) + " bytes, " + to_string(target.space) + ")",
          .expected = "a target of the same space and at least the same size"});
  }
  storage(from).merged_into = into;
}

std::vector<ValueId> Graph::declared(StorageClass cls) const {
  std::vector<ValueId> found;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const ValueId id(i);
    if (values_[i].is_declared() && storage(values_[i].storage).cls == cls) found.push_back(id);
  }
  return found;
}

std::vector<ValueId> Graph::trainable() const {
  std::vector<ValueId> all = declared(StorageClass::parameter);
  std::erase_if(all, [this](ValueId id) { return (*this)[id].frozen; });
  return all;
}

ValueId Graph::find(StorageClass cls, std::string_view name) const noexcept {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (value.is_declared() && value.name == name && storage(value.storage).cls == cls)
      return ValueId(i);
  }
  return {};
}

ValueId Graph::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_declared() && values_[i].name == name) return ValueId(i);
  }
  return {};
}

std::string describe(const Graph& graph, OpId id) {
  const Op& op = graph[id];
  std::string text(op.name());
  text += op.where.empty() ? " #" + std::to_string(id.index) : " '" + op.where + "'";
  if (op.lane >= 0) text += " (lane " + std::to_string(op.lane) + ")";
  return text;
}

}  // namespace arenite::graph
