// Random straight-line graphs that verify accepts, with every kind of note the text form has.
#pragma once

#include <arenite/graph/verify.hpp>

#include <random>
#include <set>

#include "src/graph/test_operators.hpp"

namespace arenite::graph::testing {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), builder_(graph_, table()) {}

  Graph make() {
    const int declared = 2 + pick(6), ops = pick(30);
    for (int i = 0; i < declared; ++i) declare();
    for (int i = 0; i < ops; ++i) {
      builder_.context = {.phase = phase_, .lane = pick(4) - 1, .where = pick(2) ? odd_text() : ""};
      add_op();
      if (pick(8) == 0) declare();
      if (pick(10) == 0) advance_phase();
    }
    for (int i = pick(4); i > 0; --i) graph_.outputs.push_back(any());
    decorate();
    merge_some();
    verify(graph_);
    return std::move(graph_);
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool rarely() { return pick(5) == 0; }

  std::string odd_text() {
    static const std::vector<std::string> texts{
        "conv1",       "a b",       "x#1",
        "\"quoted\"",  "tab\there", "line\nbreak",
        "back\\slash", "ünï",       std::string("nul\0byte", 8),
        "$3",          "@lane(0",   "[1 2]",
        "result",      "_"};
    return texts[static_cast<std::size_t>(pick(static_cast<int>(texts.size())))];
  }

  void declare() {
    static const std::vector<StorageClass> classes{
        StorageClass::parameter, StorageClass::optimizer_state, StorageClass::buffer,
        StorageClass::constant,  StorageClass::input,           StorageClass::output,
        StorageClass::gradient};
    static const std::vector<Shape> shapes{
        {}, {4}, {0}, {4, 6}, {2, 4, 4, 3}, {2, 4, 4, 3}, {1, 2, 3, 4, 1, 1, 1, 1}};
    const auto type = static_cast<DType>(pick(5));
    values_.push_back(builder_.declare(
        odd_text() + std::to_string(values_.size()), rarely() ? type : DType::float32,
        shapes[static_cast<std::size_t>(pick(static_cast<int>(shapes.size())))],
        classes[static_cast<std::size_t>(pick(static_cast<int>(classes.size())))]));
    Value& value = graph_[values_.back()];
    if (values_.size() % 3 == 0 && value.shape.rank() > 0 && value.shape[0] > 0 &&
        !is_persistent(cls(values_.back()))) {
      value.size_names.resize(static_cast<std::size_t>(value.shape.rank()));
      value.size_names[0] = "n" + std::to_string(value.shape[0]);
    }
  }

  ValueId any() {
    return values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
  }
  StorageClass cls(ValueId id) const { return graph_.root_storage(id).cls; }

  void add_op() {
    const ValueId x = any(), y = any();
    const Shape shape = graph_[x].shape;
    std::vector<ValueId> made;
    switch (pick(9)) {
      case 0:
        made = builder_.add("relu", {x});
        break;
      case 1:
        made = builder_.add("add", {x, graph_[y].shape == shape ? y : x});
        break;
      case 2:
        made =
            builder_.add("reshape", {x}, {{"shape", std::vector<std::int64_t>{shape.elements()}}});
        break;
      case 3:
        if (shape.rank() > 0 && shape[0] > 1) {
          made = builder_.add("slice", {x}, {{"begin", std::int64_t{1}}, {"end", shape[0]}});
        }
        break;
      case 4:
        if (shape.rank() == 4) made = builder_.add("pool", {x}, {{"mode", odd_text()}});
        break;
      case 5: {
        static const std::vector<double> numbers{0.1,     -0.0,     1e300,     -5e-324, 3.0,
                                                 1.0 / 3, INFINITY, -INFINITY, NAN};
        made = builder_.add(
            "scale", pick(2) ? std::vector<ValueId>{x, ValueId{}, y} : std::vector<ValueId>{x},
            {{"by", numbers[static_cast<std::size_t>(pick(9))]}});
        break;
      }
      case 6:
        made = builder_.add("concat", {x, y, x});
        break;
      case 7:
        made = builder_.add("odd name", {x});
        break;
      default:
        if (!renewed_.insert(graph_[x].storage).second) break;  // of each version one is made
        if (phase_ == Phase::update && cls(x) == StorageClass::parameter) {
          made = builder_.add("sgd", {x, y}, {{"lr", 0.5}});
        } else if (cls(x) == StorageClass::gradient) {
          made = builder_.add("accumulate", {x, y});
        }
    }
    values_.insert(values_.end(), made.begin(), made.end());
  }

  void advance_phase() {
    if (phase_ != Phase::update)
      phase_ = phase_ == Phase::forward ? Phase::backward : Phase::update;
  }

  bool viewed_or_view(ValueId id) const {
    int sharing = 0;
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      sharing += graph_[ValueId(i)].storage == graph_[id].storage;
    return sharing > 1;
  }

  void decorate() {
    for (std::size_t i = 0; i < graph_.op_count(); ++i) {
      Op& op = graph_[OpId(i)];
      if (pick(3) == 0) op.kernel = odd_text();
      if (!rarely()) continue;
      const std::string name = pick(2) ? odd_text() : std::string(op.name()) + ".workspace";
      const StorageId storage =
          graph_.add_storage({.name = name, .cls = StorageClass::workspace, .bytes = 64});
      const ValueId scratch = graph_.add_value({.name = name,
                                                .type = DType::uint8,
                                                .shape = {64},
                                                .storage = storage,
                                                .producer = OpId(i)});
      graph_[OpId(i)].workspace = scratch;
    }
    name_sizes();
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      Value& value = graph_[ValueId(i)];
      if (value.producer && rarely()) value.name = odd_text();
      if (viewed_or_view(ValueId(i))) continue;
      Storage& storage = graph_.storage(value.storage);
      if (value.shape.rank() == 4 && pick(2)) {
        value.layout.halo = 1 + pick(3);
        storage.bytes = byte_size(value.type, value.shape, value.layout);
      }
      if (rarely()) value.offset = 64, storage.bytes += 64;
      if (rarely()) storage.bytes += 128;
      if (rarely()) storage.name = odd_text();
      if (rarely() && value.producer && storage.cls != StorageClass::workspace)
        storage.cls = StorageClass::output;
      if (rarely())
        storage.space = {
            .device = DeviceKind::cuda, .index = pick(2), .memory = MemoryKind::device};
      if (rarely()) storage.space.capacity = 1 << 20;
    }
  }

  /// Of a third of the ops, the numbers that are some size's bound.
  void name_sizes() {
    std::set<std::string> known;
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      for (const std::string& name : graph_[ValueId(i)].size_names) known.insert(name);
    }
    const auto name_of = [&](std::int64_t number) {
      const std::string name = "n" + std::to_string(number);
      return known.contains(name) ? name : std::string();
    };
    for (std::size_t i = 0; i < graph_.op_count(); i += 3) {
      Attributes& attributes = graph_[OpId(i)].attributes;
      const auto items = attributes.items();
      for (const auto& [attribute, value] : items) {
        std::vector<std::string> names;
        if (const auto* one = std::get_if<std::int64_t>(&value)) names = {name_of(*one)};
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
          for (const std::int64_t number : *list) names.push_back(name_of(number));
        }
        const auto unnamed = std::count(names.begin(), names.end(), std::string());
        if (unnamed < static_cast<std::ptrdiff_t>(names.size()))
          attributes.set(attribute, value, std::move(names));
      }
    }
  }

  /// Tries merges of results into anything, either way round; keeps what verify accepts.
  void merge_some() {
    for (int i = 0; i < 12; ++i) {
      Graph trial = graph_;
      try {
        trial.merge(trial[any()].storage, trial[any()].storage);
        verify(trial);
        graph_ = std::move(trial);
      } catch (const Error&) {
        continue;
      }
    }
  }

  std::mt19937 random_;
  Graph graph_;
  Builder builder_;
  std::vector<ValueId> values_;
  std::set<StorageId> renewed_;
  Phase phase_ = Phase::forward;
};

}  // namespace arenite::graph::testing
