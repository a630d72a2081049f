#include <limits>

#include "src/graph/parser.hpp"

namespace arenite::graph {

template <class T>
void Parser::set_once(std::optional<T>& note, const Token& name, T value) {
  if (note) {
    lexer_.refuse(name.position, "a second note @" + name.text, "each note once");
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
    lexer_.refuse(name.position, "unknown note @" + printable(note),
                  "@name, @batch, @class, @space, @halo, @bytes, @offset, @storage, @in, @holds or "
                  "@workspace before '='");
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
    lexer_.refuse(name.position, "unknown note @" + printable(note),
                  "@init, @forward, @backward, @update, @evaluate, @lane, @kernel or @where after "
                  "a call");
  }
  expect('(', "@" + note);
  if (note == "lane") {
    set_once(notes.lane, name, number("lane"));
  } else {
    set_once(note == "kernel" ? notes.kernel : notes.where, name, text("a text"));
  }
  expect(')', "the note @" + note);
}

Space Parser::space() {
  Space read;
  const bool cpu = is_first("device", "cpu", "cuda");
  read.device = cpu ? DeviceKind::cpu : DeviceKind::cuda;
  expect(',', cpu ? "cpu" : "cuda");
  read.index = number("device number");
  expect(',', "the device number");
  read.memory = is_first("memory", "host", "device") ? MemoryKind::host : MemoryKind::device;
  if (!accept(',')) return read;
  const Position capacity_position = token_.position;
  read.capacity = integer("a number of bytes");
  if (read.capacity < 0) {
    lexer_.refuse(capacity_position, "a capacity of " + std::to_string(read.capacity),
                  "at least 0 bytes");
  }
  return read;
}

/// Whether it is the first one of two words.
bool Parser::is_first(const std::string& what, const std::string& first,
                      const std::string& second) {
  const Position position = token_.position;
  const std::string found = word(first + " or " + second);
  if (found != first && found != second)
    lexer_.refuse(position, what + " '" + printable(found) + "'", first + " or " + second);
  return found == first;
}

int Parser::number(const std::string& what) {
  const Position position = token_.position;
  const std::int64_t found = integer("a " + what);
  if (found < 0 || found > std::numeric_limits<int>::max())
    lexer_.refuse(position, what + " " + std::to_string(found), "0 to 2147483647");
  return static_cast<int>(found);
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
  lexer_.refuse(*space_missing_, "a value without a space, where others have one",
                "@space(…) for all but views, or for none");
}

}  // namespace arenite::graph
