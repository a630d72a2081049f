#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/characters.hpp"
#include "src/graph/lexer.hpp"
#include "src/graph/notes.hpp"
#include "src/graph/values.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

class Printer {
 public:
  explicit Printer(const Graph& graph)
      : graph_(graph),
        numbers_(graph.value_count(), 0),
        declared_(declared_values(graph)),
        stand_in_(graph.storage_count()),
        held_(graph.storage_count()) {
    for (std::size_t i = 0; i < graph.storage_count(); ++i)
      spaces_ = spaces_ || graph.storage(StorageId(i)).space != Space{};
  }

  std::string run() {
    print_formulas();
    for (OpId id : graph_[Graph::body].ops) {
      declare_before(graph_[id]);
      print_op(graph_[id]);
    }
    while (next_declared_ < declared_.size()) print_declared(declared_[next_declared_++]);
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (!held_[i].empty()) {
        refuse("storage '" + graph_.storage(StorageId(i)).name +
                   "', that others are merged into and no value has",
               "merges into a value's storage");
      }
    }
    print_training();
    for (const Entry& entry : graph_.entries) print_entry(entry);
    out_ += "result = " + (graph_.outputs.empty() ? "_" : references(graph_.outputs)) + ";\n";
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(std::string found,
                                  std::string expected = "a graph that verify accepts") {
    fail({.found = std::move(found), .expected = std::move(expected), .where = "graph::print"});
  }

  /// Each once, above what uses it.
  void print_formulas() {
    std::map<std::string, const std::string*> printed;
    const auto print_one = [&](const OperatorDefinition& definition) {
      if (definition.written.empty()) return;
      const auto [known, is_new] = printed.emplace(definition.name, &definition.written);
      if (is_new) out_ += definition.written + "\n";
      if (*known->second != definition.written)
        refuse("two formulas named '" + definition.name + "'", "a name of its own");
    };
    for (std::size_t i = 0; i < graph_.op_count(); ++i) print_one(*graph_[OpId(i)].definition);
    if (!graph_.training) return;
    if (!graph_.training->optimizer) refuse("training without an optimizer");
    print_one(*graph_.training->optimizer);
  }

  /// Declarations keep their order among themselves. They are printed where their ids put them, or
  /// where they are needed if that is earlier.
  void declare_before(const Op& op) {
    std::size_t limit = needed_by(op);  // declare every id below
    if (!op.results.empty()) {
      const ValueId first = *std::min_element(op.results.begin(), op.results.end());
      limit = std::max<std::size_t>(limit, first.index);
    }
    while (next_declared_ < declared_.size() && declared_[next_declared_].index < limit) {
      print_declared(declared_[next_declared_++]);
    }
  }

  /// One more than the last declared value that the op, or an op that it holds, reads, or has the
  /// size of.
  std::size_t needed_by(const Op& op) const {
    std::size_t limit = 0;
    const auto need = [&](ValueId id) {
      if (id && graph_[id].is_declared()) limit = std::max<std::size_t>(limit, id.index + 1);
    };
    for (const auto& [attribute, sizes] : op.attributes.size_names()) {
      for (const std::string& size : sizes) need(first_with(size));
    }
    for (ValueId operand : op.operands) need(operand);
    for (RegionId region : op.regions) {
      for (ValueId result : graph_[region].results) need(result);
      for (OpId inner : graph_[region].ops) limit = std::max(limit, needed_by(graph_[inner]));
    }
    return limit;
  }

  ValueId first_with(const std::string& size) const {
    if (size.empty()) return {};
    const auto first = std::ranges::find_if(
        declared_, [&](ValueId id) { return std::ranges::count(graph_[id].size_names, size) > 0; });
    return first == declared_.end() ? ValueId{} : *first;
  }

  void print_declared(ValueId id) {
    const Value& value = graph_[id];
    const StorageClass cls = graph_.storage(value.storage).cls;
    target(id);
    batch_note(value);
    storage_notes(id, value.name, cls);
    const auto known = std::find_if(declarations().begin(), declarations().end(),
                                    [&](const auto& d) { return d.cls == cls; });
    const bool own_word = known != declarations().end();
    out_ += " = ";
    out_ += own_word ? known->word : "Tensor";
    out_ += "(" + (is_raw_name(value.name) ? value.name : quote(value.name)) + ", ";
    out_ += to_string(value.type);
    out_ += ", " + dimensions(value);
    if (!own_word) out_ += ", " + std::string(to_string(cls));
    if (!value.first.is_zero()) out_ += ", " + to_string(value.first);
    if (value.frozen) out_ += ", frozen";
    out_ += ");\n";
  }

  static std::string dimensions(const Value& value) {
    if (value.size_names.empty()) return to_string(value.shape);
    std::string text = "[";
    for (int axis = 0; axis < value.shape.rank(); ++axis) {
      const std::string& name = value.size_names[static_cast<std::size_t>(axis)];
      text += (axis == 0 ? "" : ", ") + name + (name.empty() ? "" : "<=") +
              std::to_string(value.shape[axis]);
    }
    return text + "]";
  }

  void print_op(const Op& op) {
    for (ValueId id : op.results) number(id);
    if (op.workspace) number(op.workspace);
    // Before the notes on the results, which say what they hold of the values in blocks.
    const std::string blocks = print_regions(op);
    indent();
    const auto views = result_views(graph_, op);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId id = op.results[i];
      const Value& value = graph_[id];
      if (i > 0) out_ += ", ";
      out_ += reference(id);
      if (const std::string name = result_name(op, i, op.results.size()); value.name != name)
        note("name", quote(value.name));
      batch_note(value);
      if (!views[i]) {
        storage_notes(id, value.name, result_class(op.phase));
      } else if (const Value& owner = graph_[op.operands.at(views[i]->operand)];
                 value.layout != owner.layout) {
        note("halo", std::to_string(value.layout.halo));
      }
    }
    if (op.workspace) {
      const Value& scratch = graph_[op.workspace];
      if (!op.results.empty()) out_ += ", ";
      out_ += reference(op.workspace);
      note("workspace", std::to_string(scratch.shape.elements()));
      if (scratch.name != workspace_name(op)) note("name", quote(scratch.name));
      storage_notes(op.workspace, scratch.name, StorageClass::workspace);
    }
    if (!op.results.empty() || op.workspace) out_ += " = ";
    const AttributeSchema* formula = braced(op);
    call(op, formula);
    if (op.phase != Phase::forward) out_ += " @" + std::string(to_string(op.phase));
    if (op.lane != Op::shared_lane) note("lane", std::to_string(op.lane));
    if (!op.kernel.empty()) note("kernel", quote(op.kernel));
    if (!op.where.empty()) note("where", quote(op.where));
    if (formula != nullptr) {
      out_ += " { " + op.attributes.text(formula->name) + " }\n";
    } else {
      out_ += blocks.empty() ? ";\n" : blocks + "\n";
    }
  }

  /// The attribute that stands in braces behind the call: a formula that is read there as it is.
  static const AttributeSchema* braced(const Op& op) {
    const bool is_call = op.definition && op.regions.empty();  // braces behind others are blocks
    const AttributeSchema* schema = is_call ? formula_of(*op.definition) : nullptr;
    if (schema == nullptr || !op.attributes.has(schema->name)) return nullptr;
    const std::string text = op.attributes.text(schema->name);
    const bool fits = !text.empty() && !is_space(text.front()) && !is_space(text.back()) &&
                      text.find_first_of("{}\n") == std::string::npos;
    return fits ? schema : nullptr;
  }

  std::string print_regions(const Op& op) {
    if (op.regions.size() != op.definition->regions.size() || depth_ > max_region_depth) {
      refuse("an op '" + std::string(op.name()) + "' with " + std::to_string(op.regions.size()) +
             " regions, nested");
    }
    if (op.regions.empty()) return {};
    std::string outside = std::move(out_);
    out_.clear();
    for (std::size_t r = 0; r < op.regions.size(); ++r) {
      if (r > 0) out_ += " " + op.definition->regions[r];
      print_region(op, graph_[op.regions[r]]);
    }
    std::swap(out_, outside);
    return outside;
  }

  void print_region(const Op& op, const Region& region) {
    for (std::size_t i = 0; i < region.parameters.size(); ++i) {
      const ValueId id = region.parameters[i];
      out_ += i == 0 ? " (" : ", ";
      target(id);
      const Value& value = graph_[id];
      if (value.name != parameter_name(op, i)) note("name", quote(value.name));
      storage_notes(id, value.name, result_class(op.phase));
    }
    out_ += region.parameters.empty() ? " {\n" : ") {\n";
    ++depth_;
    for (OpId inner : region.ops) print_op(graph_[inner]);
    indent();
    out_ += (region.results.empty() ? "yield" : "yield " + references(region.results)) + ";\n";
    --depth_;
    indent();
    out_ += "}";
  }

  void indent() { out_.append(2 * depth_, ' '); }

  void print_training() {
    if (!graph_.training) return;
    const Training& training = *graph_.training;
    const std::string& optimizer = training.optimizer->name;
    out_ += "train(" + reference(training.loss) +
            ", optimizer=" + (is_name(optimizer) ? optimizer : quote(optimizer)) +
            ", learning_rate=" + to_string(AttributeValue(training.learning_rate));
    if (!training.schedule.empty()) out_ += ", schedule={ " + training.schedule + " }";
    for (const auto& [name, limit] :
         {std::pair("clip_value", training.clip_value), {"clip_norm", training.clip_norm}}) {
      if (limit > 0) out_ += ", " + std::string(name) + "=" + to_string(AttributeValue(limit));
    }
    if (!training.check_loss) out_ += ", check_loss=0";
    if (training.accumulate > 1) out_ += ", accumulate=" + std::to_string(training.accumulate);
    attributes(training.attributes);
    for (const ParameterGroup& group : training.groups) print_group(group);
    if (const auto& average = training.averaging) {
      out_ += ", average(decay=" + to_string(AttributeValue(average->decay)) +
              ", begin=" + std::to_string(average->begin) +
              ", every=" + std::to_string(average->every) + ")";
    }
    out_ += ", parameters=[" + references(training.parameters) + "]);\n";
  }

  void print_entry(const Entry& entry) {
    std::string settings;
    const auto set = [&](const std::string& one) {
      settings += (settings.empty() ? "(" : ", ") + one;
    };
    if (entry.mode == Mode::train) set("mode=train");
    if (entry.averaged) set("averaged");
    if (!entry.keeps.empty()) set("keeps=[" + references(entry.keeps) + "]");
    out_ += "entry " + (is_name(entry.name) ? entry.name : quote(entry.name)) + settings +
            (settings.empty() ? "" : ")") + " = " +
            (entry.outputs.empty() ? "_" : references(entry.outputs)) + ";\n";
  }

  void print_group(const ParameterGroup& group) {
    const char* comma = "";
    out_ += ", group(";
    if (!group.names.empty()) out_ += std::exchange(comma, ", ") + quote(group.names);
    if (group.most_rank) {
      out_ += std::exchange(comma, ", ") + std::string("rank=") + std::to_string(*group.most_rank);
    }
    out_ +=
        std::exchange(comma, ", ") + std::string("rate=") + to_string(AttributeValue(group.rate));
    attributes(group.attributes);
    out_ += ")";
  }

  void call(const Op& op, const AttributeSchema* elsewhere) {
    out_ += needs_quotes(op.name()) ? quote(op.name()) : std::string(op.name());
    out_ += "(" + references(op.operands);
    attributes(op.attributes, op.operands.empty() ? "" : ", ", elsewhere);
    out_ += ")";
  }

  void attributes(const Attributes& attributes, const char* comma = ", ",
                  const AttributeSchema* elsewhere = nullptr) {
    for (const auto& [name, value] : attributes.items()) {
      if (elsewhere != nullptr && name == elsewhere->name) continue;
      out_ += std::exchange(comma, ", ") + (is_name(name) && name != "_" ? name : quote(name)) +
              "=" + literal(value, attributes.size_names(name));
    }
  }

  static std::string literal(const AttributeValue& value, const std::vector<std::string>& sizes) {
    if (const auto* text = std::get_if<std::string>(&value)) return quote(*text);
    if (sizes.empty()) return to_string(value);
    const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
    if (sizes.size() != (numbers ? numbers->size() : 1))
      refuse(std::to_string(sizes.size()) + " names of sizes for " + to_string(value));
    if (!numbers) return sizes[0].empty() ? to_string(value) : sizes[0];
    std::string text = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + (sizes[i].empty() ? std::to_string((*numbers)[i]) : sizes[i]);
    }
    return text + "]";
  }

  void number(ValueId id) { numbers_[id.index] = ++last_number_; }

  void target(ValueId id) {
    number(id);
    out_ += reference(id);
  }

  std::string reference(ValueId id) const {
    if (numbers_.at(id.index) == 0)
      refuse("value '" + graph_[id].name + "' used before it is defined");
    return "$" + std::to_string(numbers_[id.index]);
  }

  /// "$1, _, $3"
  std::string references(const std::vector<ValueId>& ids) const {
    std::string all;
    for (ValueId id : ids) all += (all.empty() ? "" : ", ") + (id ? reference(id) : "_");
    return all;
  }

  void note(const char* name, const std::string& argument) {
    out_ += std::string(" @") + name + "(" + argument + ")";
  }

  void batch_note(const Value& value) {
    if (!value.batch.empty()) note("batch", quote(value.batch));
  }

  /// Everything about the bytes of a value that is no view, where it differs from the default.
  void storage_notes(ValueId id, const std::string& name, StorageClass cls) {
    const Value& value = graph_[id];
    const Storage& storage = graph_.storage(value.storage);
    if (storage.cls != cls) note("class", std::string(to_string(storage.cls)));
    if (spaces_) note("space", space(storage.space));
    if (value.layout.halo != 0) note("halo", std::to_string(value.layout.halo));
    if (value.offset != 0) note("offset", std::to_string(value.offset));
    if (storage.bytes != value.offset + byte_size(value.type, value.shape, value.layout)) {
      note("bytes", std::to_string(storage.bytes));
    }
    if (storage.name != name) note("storage", quote(storage.name));

    ValueId& known = stand_in_[value.storage.index];
    if (known) refuse("value '" + value.name + "' in the storage of '" + graph_[known].name + "'");
    known = id;
    const StorageId root = graph_.root(value.storage);
    std::vector<ValueId>& held = held_[root.index];
    if (root != value.storage) {
      // Where the root's own value comes later, that one says it holds this one.
      if (const ValueId in = stand_in_[root.index]) {
        note("in", reference(in));
      } else {
        held.push_back(id);
      }
    } else if (!held.empty()) {
      note("holds", references(held));
      held.clear();
    }
  }

  static std::string space(const Space& space) {
    std::string text = space.device == DeviceKind::cpu ? "cpu, " : "cuda, ";
    text +=
        std::to_string(space.index) + (space.memory == MemoryKind::host ? ", host" : ", device");
    if (space.capacity != Space{}.capacity) text += ", " + std::to_string(space.capacity);
    return text;
  }

  const Graph& graph_;
  std::string out_;
  bool spaces_ = false;                     // said of all, as soon as one is not the default
  std::vector<std::size_t> numbers_;        // by value; 0: not printed yet
  std::vector<ValueId> declared_;           // in id order
  std::vector<ValueId> stand_in_;           // by storage: the printed value that has it
  std::vector<std::vector<ValueId>> held_;  // by root storage: values printed before the root's own
  std::size_t next_declared_ = 0, last_number_ = 0;
  std::size_t depth_ = 0;  // of blocks
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace arenite::graph
