// A trainer's run in a file, and out of it.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>

#include "codelets/instruction_set.hpp"
#include "src/base/json.hpp"
#include "src/base/refuse.hpp"
#include "src/base/sha256.hpp"
#include "src/expr/simd/isa.hpp"
#include "src/model/ports.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <set>
#include <span>
#include <utility>

namespace arenite::train {
namespace {

using graph::StorageClass;

std::string digest(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex().substr(0, 16);
}

/// "…, learning_rate=0.02, momentum=0.9" of a graph's text, without its loss and parameters.
std::string training_text(const std::string& text) {
  const std::size_t begin = text.find("optimizer=", text.find("\ntrain(")),
                    end = text.rfind(", parameters=[");
  return text.substr(begin, end - begin);
}

std::string joined(std::span<const char* const> words) {
  std::string text;
  for (const char* const word : words) text += (text.empty() ? "" : " ") + std::string(word);
  return text;
}

/// "float32 [3, 4]"
std::string text_of(DType type, const Shape& shape) {
  return std::string(to_string(type)) + " " + to_string(shape);
}

/// The file's tensor of a port. Throws Error where there is none like it.
const io::NamedTensor& tensor_of(const StatePort& port, const io::TensorFile& file,
                                 const std::string& where) {
  const io::NamedTensor* const tensor = file.find(port.name);
  const std::string wanted = text_of(port.type, port.shape);
  if (tensor == nullptr)
    refuse("no '" + port.name + "'", wanted + " of that name, which training keeps", where);
  if (tensor->type != port.type || tensor->shape != port.shape) {
    refuse("'" + port.name + "' as " + text_of(tensor->type, tensor->shape),
           wanted + ", as in this network", where);
  }
  return *tensor;
}

bool has(const std::vector<Kept>& all, const Kept& wanted) {
  return std::ranges::any_of(all, [&](const Kept& one) {
    return one.port.cls == wanted.port.cls && one.own == wanted.own;
  });
}

}  // namespace

Facts Trainer::Impl::known_facts() const {
  const std::string training = training_text(graph::print(network.graph));
  Network untrained = network;
  untrained.graph.training.reset();
  // The network last: its text has the batch and the first values in it.
  return {
      {"batch", std::to_string(options.batch)},
      {"seed", std::to_string(options.init.seed)},
      {"weights", options.init.range
                      ? "begun in " + graph::to_string(graph::AttributeValue(*options.init.range))
                      : std::string("begun as layers ask for")},
      {"training", training},
      {"network", digest(script_of(untrained))}};
}

Facts Trainer::Impl::numerics() const {
  std::set<std::string> kernels;
  const graph::Graph& graph = spec().graph;
  // What adds up metrics is no part of what is trained.
  for (const graph::OpId id : graph[graph::Graph::body].ops) {
    const graph::Op& op = graph[id];
    if (!op.kernel.empty() && op.name() != "accumulate")
      kernels.insert(describe(graph, id) + op.kernel);
  }
  std::string all;
  for (const std::string& kernel : kernels) all += kernel + '\n';
  std::string instructions = joined(codelets::kernel_instructions());
  if (instructions.empty()) instructions = "x86-64";
  if (expr::isa() != "avx512") instructions += " (" + std::string(expr::isa()) + " at run time)";
  return {{"version", ARENITE_VERSION},
          {"instructions", instructions},
          {"shards", std::to_string(cut().shards)},
          {"lanes", std::to_string(cut().lanes)},
          {"products", std::string(runtime::to_string(options.compute))},
          {"kernels", digest(all)}};
}

void Trainer::Impl::begin(const Epochs& begun) {
  if (epochs != begun) of_epochs.clear();
  if (continues) {
    of_epochs = facts_of(begun);
    expect_same(of_epochs, *continues, "the run that is resumed");
    const std::int64_t count = begun.samples->count();
    if (place.done != count && (place.done > count || place.done % options.batch != 0)) {
      refuse(std::to_string(place.done) + " samples done of an epoch of " + std::to_string(count),
             "whole batches of " + std::to_string(options.batch), "the run that is resumed");
    }
    const std::size_t sums = place.done > 0 ? kept_sums : 0;
    if (place.sums.size() != sums) {
      refuse(std::to_string(place.sums.size()) + " sums of what is done of an epoch",
             std::to_string(sums), "the run that is resumed");
    }
    place.sums.reserve(kept_sums);
  } else if (epochs != begun) {
    place.begin_epoch();
  }
  continues.reset();
  epochs = begun;
}

const std::string& Trainer::Impl::script() {
  if (as_script) return *as_script;
  enum class Found { same, another, none };
  const auto found_at = [&](std::int64_t fewer) {
    try {
      const Network other =
          network_of(build, options.optimizer, network_options(options, fewer, true));
      const bool is_same =
          graph::equal(graph::at_bounds(network.graph, {{batch_size, fewer}}), other.graph);
      return is_same ? Found::same : Found::another;
    } catch (const std::exception&) {
      return Found::none;
    }
  };
  const auto all_are = [&](Found wanted) {
    return found_at(options.batch - 1) == wanted && found_at(1) == wanted;
  };
  if (options.batch == 1 || all_are(Found::same)) return as_script.emplace(script_of(network));
  if (!all_are(Found::none)) return as_script.emplace();
  // There is one of this batch alone.
  Network known = network;
  known.graph = graph::at_sizes(network.graph, {{batch_size, options.batch}});
  return as_script.emplace(script_of(known));
}

void Trainer::save(const std::filesystem::path& path, const SavedWords& said) {
  Impl& self = *impl_;
  if (!self.epochs && !self.continues && self.place.steps == 0)
    refuse("a run to save that has not begun", "a call of fit or step first", path.string());
  Checkpoint checkpoint{self.continues.value_or(self.identity), self.numerics(), self.place};
  if (!self.continues && self.epochs) {
    if (self.of_epochs.empty()) self.of_epochs = facts_of(*self.epochs);
    std::ranges::copy(self.of_epochs, std::back_inserter(checkpoint.identity));
  }
  std::vector<io::NamedTensor> tensors;
  for (const Kept& kept : self.kept()) {
    tensors.push_back(
        {kept.port.name, kept.port.type, kept.port.shape, self.state_of(kept.port.cls, kept.own)});
  }
  io::Metadata metadata = metadata_of(checkpoint);
  if (!self.script().empty()) metadata.emplace_back(script_name, self.script());
  const TrainerOptions& asked = self.options;
  metadata.emplace_back(asked_name,
                        Json({{"shards", asked.shards},
                              {"lanes", asked.lanes},
                              {"fuse", asked.fuse},
                              {"range", asked.init.range ? Json(*asked.init.range) : Json()}})
                            .dump());
  std::ranges::copy(said, std::back_inserter(metadata));
  io::save_tensors(path, tensors, metadata);
}

std::string Trainer::resume(const std::filesystem::path& path) {
  Impl& self = *impl_;
  const io::TensorFile file(path);
  Checkpoint found = checkpoint_of(file, path.string());
  expect_same(self.identity, found.identity, path.string());
  self.take_all(file, path.string());
  self.forget_epochs();
  self.place = found.place;
  self.continues = std::move(found.identity);
  return differences(self.numerics(), found.numerics);
}

Trainer::Impl::State Trainer::Impl::states_of(const io::TensorFile& file, const std::string& where,
                                              bool weights_alone) const {
  State state;
  for (const Kept& one : kept()) {
    const bool is_weight =
        one.port.cls != StorageClass::optimizer_state && one.own != graph::learning_rate_name;
    if (weights_alone && !is_weight) continue;
    const auto bytes = tensor_of(one.port, file, where).bytes;
    state[{one.port.cls, one.own}].assign(bytes.begin(), bytes.end());
  }
  return state;
}

void Trainer::Impl::take_all(const io::TensorFile& file, const std::string& where) {
  const std::vector<Kept> before = std::exchange(carried, {});
  State state;
  try {
    state = states_of(file, where);
  } catch (...) {
    carried = before;
    throw;
  }
  for (const Kept& one : before) saved.erase({one.port.cls, one.own});
  const std::vector<Kept> own = kept();
  const std::string prefix = std::string(to_string(StorageClass::optimizer_state)) + "/";
  for (const io::NamedTensor& tensor : file.tensors()) {
    if (std::ranges::any_of(own, [&](const Kept& one) { return one.port.name == tensor.name; }))
      continue;
    const bool has_prefix = tensor.name.starts_with(prefix);
    carried.push_back({{{tensor.name, tensor.type, tensor.shape}, StorageClass::optimizer_state},
                       tensor.name.substr(has_prefix ? prefix.size() : 0)});
    state[{carried.back().port.cls, carried.back().own}].assign(tensor.bytes.begin(),
                                                                tensor.bytes.end());
  }
  take(std::move(state));
}

void Trainer::take_weights(const std::filesystem::path& path) {
  Impl& self = *impl_;
  if (self.place.steps > 0)
    refuse("weights taken by a run that has begun", "a trainer without steps", path.string());
  self.take(self.states_of(io::TensorFile(path), path.string(), true));
}

void Trainer::take_states(const std::filesystem::path& path) {
  Impl& self = *impl_;
  const io::TensorFile file(path);
  const RunPlace place = checkpoint_of(file, path.string()).place;
  self.take_all(file, path.string());
  self.place = {.steps = place.steps, .drawn = place.drawn, .epochs = place.epochs};
  self.forget_epochs();
}

void Trainer::take_over(Trainer& before) {
  Impl &self = *impl_, &other = *before.impl_;
  if (other.running || other.fitting)
    refuse("what another trainer keeps, in the middle of its fit", "calls between them");
  const std::vector<Kept> known = other.kept();
  Impl::State state;
  self.carried.clear();
  const std::vector<Kept> own = self.kept();
  const auto copy = [&](const Kept& from, const Kept& to) {
    if (from.port.type != to.port.type || from.port.shape != to.port.shape ||
        !other.has_state(from.port.cls, from.own))
      return;
    const auto bytes = other.state_of(from.port.cls, from.own);
    state[{to.port.cls, to.own}].assign(bytes.begin(), bytes.end());
  };
  for (const Kept& one : own) {
    const bool may_be_mean = one.port.cls == StorageClass::optimizer_state;
    for (const Kept& from : known) {
      const bool is_parameter = from.port.cls == StorageClass::parameter;
      if (may_be_mean && is_parameter && graph::average_name(from.own) == one.own) copy(from, one);
    }
    for (const Kept& from : known) {
      if (from.port.cls == one.port.cls && from.own == one.own) copy(from, one);
    }
  }
  for (const Kept& from : known) {
    const bool is_mean = std::ranges::any_of(own, [&](const Kept& one) {
      return one.port.cls == StorageClass::parameter && graph::average_name(one.own) == from.own;
    });
    if (from.port.cls != StorageClass::optimizer_state || is_mean || has(own, from)) continue;
    copy(from, from);
    if (state.contains({from.port.cls, from.own})) self.carried.push_back(from);
  }
  self.take(std::move(state));
  self.place = other.place;
  self.place.begin_epoch();
  self.forget_epochs();
}

void Trainer::Impl::forget_epochs() {
  continues.reset();
  epochs.reset();
  of_epochs.clear();
}

void Trainer::Impl::take(State taken) {
  if (running || fitting) refuse("weights taken in the middle of a fit", "calls between them");
  end_profile();
  going.reset();
  put(std::move(taken));
}

void Trainer::Impl::put(State given) {
  const auto known = given.find({StorageClass::buffer, graph::learning_rate_name});
  if (known != given.end() && known->second.size() == sizeof rate)
    std::memcpy(&rate, known->second.data(), sizeof rate);
  restore(given);
  for (auto& [key, bytes] : given) saved[key] = std::move(bytes);  // what no program has yet
}

void Trainer::Impl::restore(State& state) {
  // An evaluation alone has no optimizer state, which waits for those that train.
  std::erase_if(state, [&](const auto& entry) {
    const auto& [cls, name] = entry.first;
    if (!sweeps.has_state(cls, name)) return false;
    std::ranges::copy(entry.second, sweeps.set()->state<std::byte>(cls, name).begin());
    return true;
  });
}

std::vector<Kept> Trainer::Impl::kept() const {
  const graph::Graph& step = sweeps.preview().spec.graph;
  std::vector<Kept> all = kept_of(step, ports_of(step, StorageClass::constant));
  // Said with the place.
  std::erase_if(all, [&](const Kept& one) {
    return one.port.cls == StorageClass::buffer &&
           std::ranges::any_of(network.graph.outputs, [&](graph::ValueId id) {
             return network.graph[id].name == one.own;
           });
  });
  std::ranges::copy(carried, std::back_inserter(all));
  return all;
}

std::span<std::byte> Trainer::Impl::state_of(StorageClass cls, const std::string& name) {
  if (sweeps.has_state(cls, name)) return sweeps.set()->state<std::byte>(cls, name);
  const auto known = saved.find({cls, name});
  if (known != saved.end()) return known->second;
  refuse("state '" + name + "' asked for before any data was seen",
         "a call of prepare, begin, fit or evaluate first");
}

int Trainer::epochs() const noexcept { return impl_->place.epochs; }

}  // namespace arenite::train
