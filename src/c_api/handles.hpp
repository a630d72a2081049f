// What the functions of arenite.h share: what stands behind their pointers, and how they read what
// they are given.
#pragma once

#include <arenite/arenite.h>
#include <arenite/model.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include "src/base/refuse.hpp"
#include "src/c_api/guard.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

struct arenite_session {
  std::shared_ptr<arenite::runtime::Session> workers;
};

struct arenite_options {
  arenite::ModelOptions of_model;
};

struct arenite_model {
  std::shared_ptr<arenite::runtime::Session> workers;  // as long as the model needs them
  mutable arenite::Model model;                        // asking waits for the steps under way
  mutable std::mutex one_at_a_time{};
  // Of the run under way.
  std::vector<arenite::NamedBytes> inputs{};
  arenite::graph::SizeValues sizes{};
};

namespace arenite::c_api {

template <class Action>
arenite_status run(char** message, Action action) noexcept {
  arenite_status status = ARENITE_OK;
  if (message != nullptr) *message = nullptr;
  guarded(action, [&](const char* what, bool invalid) {
    status = invalid ? ARENITE_INVALID : ARENITE_FAILURE;
    if (message != nullptr) *message = copy_text(what);
  });
  return status;
}

template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) refuse(std::string("null for ") + what, "a pointer");
  return *pointer;
}

/// A new one there. The place is looked at first: of `place = new …` it would be last.
template <class T>
void make(T** place, const char* what) {
  T*& made = given(place, what);
  made = new T;
}

/// Leaves in `named` what was given, and allocates only when there is more than ever before.
inline void read(const arenite_tensor* tensors, std::size_t count, std::vector<NamedBytes>& named) {
  if (count > 0) given(tensors, "the tensors");
  named.clear();
  for (std::size_t i = 0; i < count; ++i) {
    NamedBytes bytes{&given(tensors[i].name, "a tensor's name"), tensors[i].data, {}};
    if (tensors[i].bytes != ARENITE_UNKNOWN_BYTES) bytes.bytes = tensors[i].bytes;
    named.push_back(bytes);
  }
}

/// The same of sizes: those of a model are nearly always the same ones.
inline void read(const arenite_size* sizes, std::size_t count, graph::SizeValues& named) {
  if (count > 0) given(sizes, "the sizes");
  const auto is = [&](const std::string& name) {
    return [&](const arenite_size& size) { return name == &given(size.name, "a size's name"); };
  };
  std::erase_if(named,
                [&](const auto& one) { return std::none_of(sizes, sizes + count, is(one.first)); });
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = &given(sizes[i].name, "a size's name");
    if (std::count_if(sizes, sizes + count, is(name)) > 1)
      refuse("size '" + name + "' twice", "each once");
    named[name] = sizes[i].value;
  }
}

inline void feed(arenite_model* model, const char* entry, const arenite_size* sizes,
                 std::size_t size_count, const arenite_tensor* inputs, std::size_t input_count,
                 void* const* outputs, std::size_t output_count) {
  arenite_model& one = given(model, "the model");
  if (output_count > 0) given(outputs, "the outputs");
  const std::lock_guard lock(one.one_at_a_time);
  read(inputs, input_count, one.inputs);
  read(sizes, size_count, one.sizes);
  one.model.run(entry, one.inputs, {outputs, output_count}, one.sizes);
}

template <class T>
const T& one_of(const std::vector<T>& ports, std::size_t index, const char* what) {
  if (index < ports.size()) return ports[index];
  refuse(std::string(what) + " " + std::to_string(index), "one of " + std::to_string(ports.size()));
}

inline void write(const Port& from, arenite_port* port) {
  arenite_port& to = given(port, "the port");
  to = {.name = from.name.c_str(),
        .type = static_cast<arenite_type>(from.type),
        .rank = from.shape.rank(),
        .shape = {},
        .bytes = from.bytes()};
  std::ranges::copy(from.shape, to.shape);
}

inline arenite_state_kind kind_of(graph::StorageClass cls) {
  if (cls == graph::StorageClass::parameter) return ARENITE_PARAMETER;
  return cls == graph::StorageClass::optimizer_state ? ARENITE_OPTIMIZER_STATE : ARENITE_BUFFER;
}

/// The caller's `bytes` bytes of `data` for a state of `size`, or as many as it has.
inline void check_state(const char* name, std::size_t size, const void* data, std::int64_t bytes) {
  const auto known = static_cast<std::int64_t>(size);
  if (bytes != ARENITE_UNKNOWN_BYTES && bytes != known) {
    refuse(std::to_string(bytes) + " bytes of state '" + name + "'", std::to_string(known));
  }
  if (data == nullptr && known > 0) {
    refuse("null for the bytes of state '" + std::string(name) + "'",
           std::to_string(known) + " bytes");
  }
}

inline arenite_memory memory_of(const plan::StepPlan& plan) {
  arenite_memory sums{.bytes = 0,
                      .arena_bytes = plan.transient_bytes(),
                      .lower_bound = plan.lower_bound,
                      .separate = plan.separate,
                      .optimal = plan.optimal ? 1 : 0};
  const std::int64_t task_sets = runtime::task_sets_of(plan);
  for (const plan::BlockPlan& block : plan.blocks)
    sums.bytes += block.per_task_set ? task_sets * block.bytes : block.bytes;
  return sums;
}

inline std::string lines_of(const std::vector<std::string>& all) {
  std::string lines;
  for (const std::string& line : all) lines += line + "\n";
  return lines;
}

/// A copy of the text, which is the caller's.
inline void hand_over(const std::string& text, char*& place) {
  char* copy = copy_text(text);
  if (copy == nullptr) throw std::bad_alloc();
  place = copy;
}

}  // namespace arenite::c_api
