#include <limits>

#include "src/graph/parser.hpp"

namespace arenite::graph {

template <class T>
void Parser::set_once(std::optional<T>& note, const Token& name, T value) {
  if (note) {
    lexer_.fail_at(name.position,
                   {.found = "a second note @" + name.text, .expected = "each note once"});
  }
  note = std::move(value);
}

void Parser::value_note(ValueNotes& notes) {
  const Token name = token_;
  const std::string note = word("a note, as in @name(\"x\")");
  expect('(', "@" + note);
  if (note == "name") {
    set_once(notes.name, name, text("a text"));
  } else if (note == "storage") {
    set_once(notes.storage, name, text("a text"));
  } else if (note == "batch") {
    set_once(notes.batch, name, text("a text"));
  } else if (note == "class") {
    const Position position = token_.position;
    const std::string cls = word("a storage class");
    set_once(notes.cls, name, at(position, [&] { return parse_storage_class(cls); }));
  } else if (note == "space") {
    set_once(notes.space, name, space());
  } else if (note == "halo") {
    set_once(notes.halo, name, integer("rows and columns"));
  } else if (note == "bytes") {
    set_once(notes.bytes, name, integer("a number of bytes"));
  } else if (note == "offset") {
    set_once(notes.offset, name, integer("a number of bytes"));
  } else if (note == "workspace") {
    set_once(notes.workspace, name, integer("a number of bytes"));
  } else if (note == "in") {
    set_once(notes.in, name, reference_token());
  } else if (note == "holds") {
    do {
      notes.holds.push_back(reference_token());
    } while (accept(','));
  } else {
    lexer_.fail_at(name.position, {.found = "unknown note @" + printable(note),
                                   .expected = "@name, @batch, @class, @space, @halo, @bytes, "
                                               "@offset, @storage, @in, @holds or @workspace "
                                               "before '='"});
  }
  expect(')', "the note @" + note);
}

void Parser::op_note(OpNotes& notes) {
  const Token name = token_;
  const std::string note = word("a note, as in @backward");
  for (Phase phase :
       {Phase::init, Phase::forward, Phase::backward, Phase::update, Phase::evaluate}) {
    if (note == to_string(phase)) return set_once(notes.phase, name, phase);
  }
  if (note != "lane" && note != "kernel" && note != "where") {
    lexer_.fail_at(name.position, {.found = "unknown note @" + printable(note),
                                   .expected = "@init, @forward, @backward, @update, @evaluate, "
                                               "@lane, @kernel or @where after a call"});
  }
  expect('(', "@" + note);
  if (note == "lane") {
    const Position position = token_.position;
    const std::int64_t lane = integer("a lane");
    if (lane < 0 || lane > std::numeric_limits<int>::max()) {
      lexer_.fail_at(position,
                     {.found = "lane " + std::to_string(lane), .expected = "0 to 2147483647"});
    }
    set_once(notes.lane, name, lane);
  } else {
    set_once(note == "kernel" ? notes.kernel : notes.where, name, text("a text"));
  }
  expect(')', "the note @" + note);
}

Space Parser::space() {
  Space read;
  const Position device_position = token_.position;
  const std::string device = word("cpu or cuda");
  if (device != "cpu" && device != "cuda") {
    lexer_.fail_at(device_position,
                   {.found = "device '" + printable(device) + "'", .expected = "cpu or cuda"});
  }
  read.device = device == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  expect(',', device);
  const Position index_position = token_.position;
  const std::int64_t index = integer("a device number");
  if (index < 0 || index > std::numeric_limits<int>::max()) {
    lexer_.fail_at(index_position, {.found = "device number " + std::to_string(index),
                                    .expected = "0 to 2147483647"});
  }
  read.index = static_cast<int>(index);
  expect(',', "the device number");
  const Position memory_position = token_.position;
  const std::string memory = word("host or device");
  if (memory != "host" && memory != "device") {
    lexer_.fail_at(memory_position,
                   {.found = "memory '" + printable(memory) + "'", .expected = "host or device"});
  }
  read.memory = memory == "host" ? MemoryKind::host : MemoryKind::device;
  if (!accept(',')) return read;
  const Position capacity_position = token_.position;
  read.capacity = integer("a number of bytes");
  if (read.capacity < 0) {
    lexer_.fail_at(capacity_position, {.found = "a capacity of " + std::to_string(read.capacity),
                                       .expected = "at least 0 bytes"});
  }
  return read;
}

void Parser::annotate(const Target& target, ValueId id, bool is_view) {
  at(target.position, [&] { apply(graph_, id, target.notes, is_view); });
  if (target.notes.space) {
    spaces_given_ = true;
  } else if (!is_view && !space_missing_) {
    space_missing_ = target.position;
  }
}

// A value that was overlooked would be planned in a memory where no worker of its op looks for it.
void Parser::check_spaces() const {
  if (!spaces_given_ || !space_missing_) return;
  lexer_.fail_at(*space_missing_, {.found = "a value without a space, where others have one",
                                   .expected = "@space(…) for all but views, or for none"});
}

}  // namespace arenite::graph
