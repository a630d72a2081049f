// What a model keeps between its runs: read, written, saved and loaded.
#include <arenite/graph/passes.hpp>
#include <arenite/model.hpp>

#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/io/safetensors.hpp"
#include "src/model/model_impl.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace arenite {

using graph::StorageClass;

void refuse_without_training() {
  refuse("a model whose script has no training", "one with a train statement");
}

std::span<std::byte> Model::Impl::state(StorageClass cls, std::string_view name) {
  settle();
  return set->state<std::byte>(cls, name);
}

std::size_t Model::Impl::state_number(std::string_view name) const {
  const auto found = std::ranges::find(states, name, &StatePort::name);
  if (found != states.end()) return static_cast<std::size_t>(found - states.begin());
  Nearest nearest(name);
  for (const StatePort& one : states) nearest.consider(one.name);
  refuse("no state named '" + std::string(name) + "'", "a parameter, optimizer state or buffer", {},
         nearest.hint());
}

void Model::Impl::check_batches(const std::string& name,
                                const std::array<std::int64_t, 2>& counts) const {
  const int most = plans.graph().training->accumulate;
  if (counts[1] == most && counts[0] >= 0 && counts[0] < most) return;
  refuse("'" + name + "' of " + std::to_string(counts[0]) + " batches of an update by " +
             std::to_string(counts[1]),
         "0 to " + std::to_string(most - 1) + " of one by " + std::to_string(most));
}

/// What only some bytes may be.
void Model::Impl::check_state(std::size_t number, std::span<const std::byte> bytes) const {
  const std::string& name = own_names[number];
  const StorageClass cls = states[number].cls;
  if (!trains()) return;
  if (cls == StorageClass::buffer && name == graph::learning_rate_name) {
    float rate = 0;
    std::memcpy(&rate, bytes.data(), sizeof rate);
    graph::check_learning_rate(rate);
  }
  if (name.empty() || (cls == StorageClass::optimizer_state && name == graph::step_name)) {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    std::array<std::int64_t, 2> counts{};
    std::memcpy(counts.data(), bytes.data(), std::min(bytes.size(), sizeof counts));
    if (bytes.size() == sizeof counts) {
      check_batches(states[number].name, counts);
    } else if (counts[0] < 0 || counts[0] > most) {
      refuse("'" + states[number].name + "' of " + std::to_string(counts[0]),
             "a number that counts from 0 on");
    }
  }
}

std::span<std::byte> Model::Impl::state(std::string_view name) {
  const std::size_t number = state_number(name);
  if (own_names[number].empty()) {
    settle();
    return std::as_writable_bytes(counted.at(number));
  }
  return state(states[number].cls, own_names[number]);
}

void Model::Impl::set_state(std::string_view name, std::span<const std::byte> bytes) {
  const std::span<std::byte> place = state(name);
  if (bytes.size() != place.size()) {
    refuse(std::to_string(bytes.size()) + " bytes of state '" + std::string(name) + "'",
           std::to_string(place.size()));
  }
  check_state(state_number(name), bytes);
  std::ranges::copy(bytes, place.begin());
}

std::span<std::byte> Model::state(std::string_view name) {
  const Impl::Turn turn(*impl_);
  return impl_->state(name);
}

void Model::set_state(std::string_view name, std::span<const std::byte> bytes) {
  const Impl::Turn turn(*impl_);
  impl_->set_state(name, bytes);
}

std::span<std::byte> Model::Impl::learning_rate() {
  if (!trains()) refuse_without_training();
  return state(StorageClass::buffer, graph::learning_rate_name);
}

float Model::learning_rate() {
  const Impl::Turn turn(*impl_);
  float rate = 0;
  std::memcpy(&rate, impl_->learning_rate().data(), sizeof rate);
  return rate;
}

void Model::set_learning_rate(float rate) {
  const Impl::Turn turn(*impl_);
  const std::span<std::byte> place = impl_->learning_rate();
  graph::check_learning_rate(rate);
  std::memcpy(place.data(), &rate, sizeof rate);
}

SavedWords saved_words(const std::filesystem::path& path) {
  return io::TensorFile(path).metadata();
}

void Model::save(const std::filesystem::path& path, const SavedWords& said) {
  const Impl::Turn turn(*impl_);
  impl_->settle();
  std::vector<io::NamedTensor> tensors;
  for (std::size_t i = 0; i < impl_->states.size(); ++i) {
    const StatePort& port = impl_->states[i];
    if (impl_->waits(i) && impl_->batches[0] == 0) continue;
    tensors.push_back({port.name, port.type, port.shape, impl_->state(port.name)});
  }
  io::save_tensors(path, tensors, said);
}

/// What waits in a file is of updates like this model's.
void Model::Impl::expect_batches(const io::TensorFile& file,
                                 const std::filesystem::path& path) const {
  // Unless it is something of the graph's own.
  const auto known = std::ranges::find(states, "accumulated", &StatePort::name);
  if (known != states.end() && !waits(static_cast<std::size_t>(known - states.begin()))) return;
  const io::NamedTensor* const waiting = file.find("accumulated");
  std::array<std::int64_t, 2> counts{};
  if (waiting == nullptr || waiting->type != DType::int64 || waiting->bytes.size() != sizeof counts)
    return;
  std::memcpy(counts.data(), waiting->bytes.data(), sizeof counts);
  if (!trains() || counts[1] == batches[1]) return;
  refuse("gradients that wait for an update by " + std::to_string(counts[1]) + " batches",
         "those of one by " + std::to_string(batches[1]) + ", or none", path.string(),
         "save behind an update");
}

void Model::load(const std::filesystem::path& path) {
  const Impl::Turn turn(*impl_);
  const io::TensorFile file(path);
  impl_->expect_batches(file, path);
  for (const io::NamedTensor& tensor : file.tensors()) {
    if (std::ranges::find(impl_->states, tensor.name, &StatePort::name) == impl_->states.end())
      refuse("'" + tensor.name + "'", "only what this model keeps", path.string());
  }
  const bool any_wait = std::ranges::any_of(file.tensors(), [&](const io::NamedTensor& tensor) {
    return impl_->waits(impl_->state_number(tensor.name));
  });
  for (std::size_t i = 0; i < impl_->states.size(); ++i) {
    const StatePort& port = impl_->states[i];
    if (impl_->waits(i) && !any_wait) continue;
    const io::NamedTensor* tensor = file.find(port.name);
    const std::string wanted = std::string(to_string(port.type)) + " " + to_string(port.shape);
    if (tensor == nullptr) {
      refuse("no '" + port.name + "'", wanted + " of that name, which this model keeps",
             path.string());
    }
    if (tensor->type != port.type || tensor->shape != port.shape) {
      refuse("'" + port.name + "' as " + std::string(to_string(tensor->type)) + " " +
                 to_string(tensor->shape),
             wanted + ", as in this model", path.string());
    }
    impl_->check_state(i, tensor->bytes);
  }
  impl_->batches[0] = 0;
  for (const io::NamedTensor& tensor : file.tensors()) impl_->set_state(tensor.name, tensor.bytes);
}

}  // namespace arenite
