#include <arenite/plan/csv.hpp>

#include <arenite/error.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "src/base/refuse.hpp"
#include "src/plan/alias.hpp"
#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

struct Cell {
  std::string text;        // without quotes and blanks around
  std::size_t column = 0;  // of its first character, from 1
};

struct Row {
  std::size_t line = 0;  // from 1
  std::vector<Cell> cells;
};

std::string place(std::string_view where, std::size_t line, std::size_t column) {
  return std::string(where) + ", line " + std::to_string(line) + ", column " +
         std::to_string(column);
}

/// What a message shows of a text that may be anything.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string result;
  for (const char c : text.substr(0, most)) {
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return "'" + result + (text.size() > most ? "…" : "") + "'";
}

/// What some editors put before the text of a file: not a part of it.
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : text_(text), where_(where) {
    if (text.size() > max_csv_bytes) {
      refuse(digits(static_cast<std::int64_t>(text.size())) + " bytes",
             "at most " + digits(static_cast<std::int64_t>(max_csv_bytes)), std::string(where));
    }
    if (text_.starts_with(byte_order_mark)) at_ = start_ = byte_order_mark.size();
  }

  /// The next row that is not blank; none at the end.
  std::optional<Row> next() {
    while (at_ < text_.size()) {
      Row row = read_row();
      if (row.cells.size() > 1 || !row.cells[0].text.empty()) return row;
    }
    return std::nullopt;
  }

 private:
  Row read_row() {
    Row row{++line_, {}};
    start_ = at_;
    for (;;) {
      row.cells.push_back(read_cell());
      if (at_ == text_.size()) return row;
      if (text_[at_++] == '\n') return row;  // else a comma
    }
  }

  Cell read_cell() {
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    Cell cell{{}, at_ - start_ + 1};
    if (at_ < text_.size() && text_[at_] == '"') {
      cell.text = read_quoted(cell.column);
      while (at_ < text_.size() && blank(text_[at_])) ++at_;
      if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
        wrong(at_ - start_ + 1, shown(text_.substr(at_, 1)) + " after a quoted field",
              "a comma or the end of the line");
      }
      return cell;
    }
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string_view rest = text_.substr(at_, end - at_);
    while (!rest.empty() && blank(rest.back())) rest.remove_suffix(1);
    cell.text = rest;
    at_ = end;
    return cell;
  }

  std::string read_quoted(std::size_t column) {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '"') return text;
      }
      text += text_[at_];
    }
    wrong(column, "a quote that is not closed", "another one on the same line");
  }

  [[noreturn]] void wrong(std::size_t column, std::string found, std::string expected) const {
    refuse(std::move(found), std::move(expected), place(where_, line_, column));
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of the line
  std::size_t line_ = 0;
};

/// A header's columns by name, and rows checked against them.
class Table {
 public:
  Table(std::string_view text, std::string_view where) : reader_(text, where), where_(where) {
    std::optional<Row> header = reader_.next();
    if (!header) {
      refuse("no header", "a first line such as 'id,lower,upper,size'", std::string(where));
    }
    header_ = std::move(*header);
    for (std::size_t i = 0; i < header_.cells.size(); ++i) {
      const Cell& cell = header_.cells[i];
      if (!index_.emplace(cell.text, i).second) {
        wrong(header_, cell, "a second column " + shown(cell.text), "each name once");
      }
    }
    for (const char* name : {"id", "lower", "size"}) {
      if (!has(name)) {
        wrong(header_, header_.cells[0], "no column '" + std::string(name) + "'",
              "the columns id, lower, upper (or end) and size", separator_hint());
      }
    }
    if (has("upper") == has("end")) {
      wrong(header_, header_.cells[0],
            has("upper") ? "the columns 'upper' and 'end'" : "no column 'upper' or 'end'",
            "one of 'upper' (exclusive) and 'end' (inclusive)");
    }
  }

  const Row& header() const noexcept { return header_; }
  bool has(const std::string& name) const { return index_.contains(name); }
  /// Of a row. The column is there.
  const Cell& cell(const Row& row, const std::string& name) const {
    return row.cells[index_.at(name)];
  }

  std::optional<Row> next() {
    std::optional<Row> row = reader_.next();
    if (row && row->cells.size() != header_.cells.size()) {
      wrong(*row, row->cells.back(), std::to_string(row->cells.size()) + " fields",
            std::to_string(header_.cells.size()) + ", as in the header");
    }
    return row;
  }

  std::int64_t integer(const Row& row, const std::string& name, std::int64_t low) const {
    const Cell& field = cell(row, name);
    const char* end = field.text.data() + field.text.size();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(field.text.data(), end, value);
    if (error != std::errc{} || stop != end || value < low || value > Problem::limit) {
      const std::string range = digits(low) + " to " + digits(Problem::limit);
      const std::size_t point = field.text.find_first_not_of("0", field.text.find('.') + 1);
      const bool is_whole = field.text.find('.') != std::string::npos && point == std::string::npos;
      wrong(row, field, name + " " + shown(field.text), "a whole number of " + range,
            is_whole ? "without a decimal point" : "");
    }
    return value;
  }

  [[noreturn]] void wrong(const Row& row, const Cell& cell, std::string found, std::string expected,
                          std::string hint = {}) const {
    refuse(std::move(found), std::move(expected), place(where_, row.line, cell.column),
           std::move(hint));
  }
  /// Where what spreadsheets write, too, stands between columns.
  std::string separator_hint() const {
    const std::string& first = header_.cells[0].text;
    const std::size_t other = first.find_first_of(";\t|");
    if (other == std::string::npos) return {};
    return "commas stand between columns, no " + std::string(first[other] == '\t'  ? "tabs"
                                                             : first[other] == ';' ? "semicolons"
                                                                                   : "bars");
  }

 private:
  Reader reader_;
  std::string_view where_;
  Row header_;
  std::map<std::string, std::size_t> index_;
};

Lifetime read_lifetime(const Table& table, const Row& row) {
  Lifetime lifetime;
  lifetime.begin = table.integer(row, "lower", -Problem::limit);
  if (table.has("upper")) {
    lifetime.end = table.integer(row, "upper", -Problem::limit);
    if (lifetime.end <= lifetime.begin) {
      table.wrong(row, table.cell(row, "upper"), "the lifetime " + lifetime_text(lifetime),
                  "an upper above the lower");
    }
    return lifetime;
  }
  const std::int64_t last = table.integer(row, "end", -Problem::limit);
  if (last < lifetime.begin || last == Problem::limit) {
    table.wrong(row, table.cell(row, "end"),
                "a lifetime from " + digits(lifetime.begin) + " to " + digits(last),
                "an end of at least the lower, below " + digits(Problem::limit));
  }
  lifetime.end = last + 1;
  return lifetime;
}

/// "4-6 9-12", each in the lifetime's form.
std::vector<Lifetime> read_gaps(const Table& table, const Row& row) {
  std::vector<Lifetime> gaps;
  if (!table.has("gaps")) return gaps;
  const Cell& cell = table.cell(row, "gaps");
  const char* at = cell.text.data();
  const char* end = at + cell.text.size();
  const auto number = [&](std::int64_t& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    at = stop;
    return error == std::errc{} && value >= -Problem::limit && value < Problem::limit;
  };
  while (at != end) {
    Lifetime gap;
    bool good = number(gap.begin) && at != end && *at++ == '-' && number(gap.end);
    if (!table.has("upper")) ++gap.end;
    good = good && (at == end || *at == ' ');
    if (!good) {
      table.wrong(row, cell, "gaps " + shown(cell.text),
                  "pairs of times such as '4-6 9-12', within ±2^60");
    }
    while (at != end && *at == ' ') ++at;
    gaps.push_back(gap);
  }
  return gaps;
}

/// The inverse.
std::string gaps_text(const std::vector<Lifetime>& gaps) {
  std::string text;
  for (const auto [begin, end] : gaps) {
    text += (text.empty() ? "" : " ") + std::to_string(begin) + "-" + std::to_string(end);
  }
  return text;
}

Buffer read_buffer(const Table& table, const Row& row, std::int64_t alignment) {
  Buffer buffer;
  buffer.name = table.cell(row, "id").text;
  buffer.bytes = table.integer(row, "size", 0);
  buffer.lifetime = read_lifetime(table, row);
  buffer.gaps = read_gaps(table, row);
  buffer.alignment = alignment;
  if (table.has("alignment") && !table.cell(row, "alignment").text.empty()) {
    buffer.alignment = table.integer(row, "alignment", 1);
  }
  if (table.has("space") && !table.cell(row, "space").text.empty()) {
    const Cell& cell = table.cell(row, "space");
    const auto space = parse_space(cell.text);
    if (!space) table.wrong(row, cell, "space " + shown(cell.text), std::string(a_space));
    buffer.space = *space;
  }
  if (table.has("offset") && !table.cell(row, "offset").text.empty()) {
    buffer.offset = table.integer(row, "offset", 0);
  }
  if (table.has("alias")) buffer.alias = table.cell(row, "alias").text;
  return buffer;
}

/// In quotes where a reader would need them.
std::string field_text(const std::string& text) {
  if (text.empty()) return text;
  const bool plain = text.find_first_of(",\"\n") == std::string::npos && !blank(text.front()) &&
                     !blank(text.back()) && !text.starts_with(byte_order_mark);
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Problem read_csv(std::string_view text, std::string_view where, std::int64_t alignment) {
  Table table(text, where);
  Problem problem;
  while (const std::optional<Row> row = table.next()) {
    Buffer buffer = read_buffer(table, *row, alignment);
    try {
      problem.add(std::move(buffer));
    } catch (const Error& error) {
      table.wrong(*row, row->cells.front(), error.text().found, error.text().expected);
    }
  }
  return problem;
}

std::string write_csv(std::string_view text, std::string_view where, const Plan& plan) {
  std::map<std::string_view, std::int64_t> offsets;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    offsets.emplace(plan.buffers[i].name, plan.offsets[i]);
  }
  Table table(text, where);
  const bool has_offset = table.has("offset");
  std::string result;
  const auto write = [&](const Row& row, const std::string& offset) {
    std::string line;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const bool here = table.header().cells[i].text == "offset";
      line += (i == 0 ? "" : ",") + (here ? offset : field_text(row.cells[i].text));
    }
    result += line + (has_offset ? "" : "," + offset) + '\n';
  };
  write(table.header(), "offset");
  while (const std::optional<Row> row = table.next()) {
    const Cell& id = table.cell(*row, "id");
    const auto found = offsets.find(id.text);
    if (found == offsets.end()) {
      table.wrong(*row, id, "id " + shown(id.text), "one that the plan has");
    }
    write(*row, std::to_string(found->second));
  }
  return result;
}

std::string write_csv(const Plan& plan) {
  const bool aliases = has_aliases(plan.buffers);
  const bool gaps = std::any_of(plan.buffers.begin(), plan.buffers.end(),
                                [](const Buffer& buffer) { return !buffer.gaps.empty(); });
  std::string result = "id,lower,upper,size,alignment,space,";
  result += std::string(gaps ? "gaps," : "") + (aliases ? "alias," : "") + "offset\n";
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if ((buffer.name + buffer.alias).find('\n') != std::string::npos) {
      refuse("the line break in the name or alias of " + shown(buffer.name), "one line",
             "a table of the plan");
    }
    result += field_text(buffer.name);
    for (const std::int64_t number :
         {buffer.lifetime.begin, buffer.lifetime.end, buffer.bytes, buffer.alignment}) {
      result += "," + std::to_string(number);
    }
    result += "," + to_string(buffer.space) + ",";
    if (gaps) result += gaps_text(buffer.gaps) + ",";
    if (aliases) result += field_text(buffer.alias) + ",";
    result += std::to_string(plan.offsets[i]) + '\n';
  }
  return result;
}

}  // namespace arenite::plan
