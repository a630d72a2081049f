#include "src/graph/notes.hpp"

#include <algorithm>
#include <array>

namespace arenite::graph {

const std::vector<Declaration>& declarations() {
  static const std::vector<Declaration> all{{"InputTensor", StorageClass::input},
                                            {"ConstantTensor", StorageClass::constant},
                                            {"BufferTensor", StorageClass::buffer},
                                            {"ParameterTensor", StorageClass::parameter},
                                            {"StateTensor", StorageClass::optimizer_state}};
  return all;
}

bool needs_quotes(std::string_view name) noexcept {
  // Words of the grammar, present and foreseen.
  constexpr std::array<std::string_view, 9> reserved{"_",    "result", "Tensor", "else",   "yield",
                                                     "grad", "train",  "entry",  "formula"};
  const auto& declared = declarations();
  return !is_name(name) || std::find(reserved.begin(), reserved.end(), name) != reserved.end() ||
         std::any_of(declared.begin(), declared.end(),
                     [&](const Declaration& d) { return d.word == name; });
}

void apply(Graph& graph, ValueId id, const ValueNotes& notes, bool is_view) {
  Value& value = graph[id];
  if (notes.name) value.name = *notes.name;
  if (notes.batch) value.batch = *notes.batch;
  if (notes.halo) {
    if (*notes.halo < 0 || *notes.halo > 1 << 20) {
      fail({.found = "a halo of " + std::to_string(*notes.halo), .expected = "0 to 1048576"});
    }
    value.layout.halo = static_cast<int>(*notes.halo);
  }
  if (is_view) {
    if (notes.storage || notes.cls || notes.space || notes.bytes || notes.offset || notes.in ||
        !notes.holds.empty()) {
      fail({.found = "a note on the storage of a view",
            .expected = "such notes on its owner",
            .hint = "a view lies in its owner's storage"});
    }
    return;
  }
  Storage& storage = graph.storage(value.storage);
  storage.name = notes.storage.value_or(value.name);
  if (notes.cls) storage.cls = *notes.cls;
  if (notes.space) storage.space = *notes.space;
  // Far from overflow, as Shape's own limit is.
  constexpr std::int64_t limit = std::int64_t{1} << 60;
  for (const auto& number : {notes.offset, notes.bytes}) {
    if (number && (*number < 0 || *number > limit)) {
      fail({.found = std::to_string(*number) + " bytes", .expected = "0 to 2^60"});
    }
  }
  value.offset = notes.offset.value_or(0);
  storage.bytes =
      notes.bytes.value_or(value.offset + byte_size(value.type, value.shape, value.layout));
}

}  // namespace arenite::graph
