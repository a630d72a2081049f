#include "tests/ptx/parser.hpp"

#include "tests/ptx/operations.hpp"
#include "tests/ptx/registers.hpp"
#include "tests/ptx/tokens.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace ptx {
namespace {

/// Of a type's name, as in .reg .f32: 0 of a predicate.
std::optional<std::uint8_t> bytes_of_type(std::string_view type) {
  if (type == "pred") return 0;
  for (const char* kind : {"b", "u", "s", "f"}) {
    if (!type.starts_with(kind)) continue;
    const std::string_view bits = type.substr(1);
    if (bits == "8") return 1;
    if (bits == "16") return 2;
    if (bits == "32") return 4;
    if (bits == "64") return 8;
  }
  return std::nullopt;
}

/// What is declared within kernels, and outside of them.
class Declarations {
 public:
  explicit Declarations(Tokens& tokens) : tokens_(tokens) {}

  std::uint32_t number() {
    const Token token = tokens_.peek();
    std::uint32_t value = 0;
    const char* const end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ptr != end || token.text.empty())
      tokens_.fail("a number");
    tokens_.take();
    return value;
  }
  std::uint8_t type() {
    const Token token = tokens_.peek();
    const auto bytes = bytes_of_type(token.text.substr(token.text.empty() ? 0 : 1));
    if (!token.text.starts_with(".") || !bytes) tokens_.fail("a type");
    tokens_.take();
    return *bytes;
  }

  struct Variable {
    std::string name;
    std::uint32_t at;
    std::uint8_t bytes;  ///< of each element
  };

  /// [.align n] .type name [ '[' count ']' ], behind `end` bytes.
  Variable variable(std::uint32_t& end) {
    const std::uint32_t stated = tokens_.take_if(".align") ? number() : 1;
    const std::uint8_t bytes = type();
    const std::string name(tokens_.take().text);
    std::uint32_t count = 1;
    if (tokens_.take_if("[")) {
      count = number();
      tokens_.expect("]");
    }
    const std::uint32_t at = aligned(end, std::max<std::uint32_t>(stated, bytes));
    end = at + count * bytes;
    return {name, at, bytes};
  }

  /// 12, -12, 0x1f, 0f3F800000, 0d3FF0000000000000.
  std::optional<std::uint64_t> literal() {
    const bool negative = tokens_.take_if("-");
    std::string_view digits = tokens_.peek().text;
    int base = 10;
    if (digits.starts_with("0f") || digits.starts_with("0d") || digits.starts_with("0x")) {
      base = 16;
      digits.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, value, base).ptr != end) {
      if (negative) tokens_.fail("a number");
      return std::nullopt;
    }
    tokens_.take();
    return negative ? 0 - value : value;
  }

 protected:
  Tokens& tokens_;
};

class EntryParser : Declarations {
 public:
  EntryParser(Tokens& tokens, Module& module, Entry& entry)
      : Declarations(tokens), entry_(entry), registers_(entry) {
    for (const auto& [name, words] : module.variables) {
      const auto begin = reinterpret_cast<std::uintptr_t>(words.data());
      symbols_[name] = begin;
      entry_.variables.push_back({begin, begin + words.size() * sizeof(words[0])});
    }
  }

  void parse() {
    if (tokens_.take_if("(")) parameters();
    while (!tokens_.is("{")) directive();
    tokens_.expect("{");
    registers_.enter();
    while (registers_.in_scope()) statement();
    entry_.code.push_back({.kind = Instruction::Kind::leave});
    for (const auto& [instruction, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end())
        throw std::runtime_error("PTX: no label '" + label + "' in " + entry_.name);
      entry_.code[instruction].target = found->second;
    }
    entry_.register_bytes = registers_.bytes();
  }

 private:
  using Kind = Instruction::Kind;

  void parameters() {
    while (!tokens_.take_if(")")) {
      tokens_.expect(".param");
      const Variable one = variable(entry_.parameter_bytes);
      entry_.parameters.push_back({one.at, entry_.parameter_bytes - one.at});
      symbols_[one.name] = one.at;
      tokens_.take_if(",");
    }
  }

  void directive() {
    const bool threads = tokens_.is(".maxntid") || tokens_.is(".reqntid");
    if (!threads && !tokens_.is(".minnctapersm")) tokens_.fail("a directive of a kernel, or '{'");
    tokens_.take();
    std::uint32_t product = number();
    while (tokens_.take_if(",")) product *= number();
    if (threads) entry_.most_threads = product;
  }

  void statement() {
    if (tokens_.at_end()) tokens_.fail("'}'");
    if (tokens_.take_if("{")) {
      registers_.enter();
    } else if (tokens_.take_if("}")) {
      registers_.leave();
    } else if (tokens_.take_if(".reg")) {
      declaration();
    } else if (tokens_.take_if(".shared")) {
      const Variable one = variable(entry_.shared_bytes);
      symbols_[one.name] = one.at;
      tokens_.expect(";");
    } else if (tokens_.take_if(".local")) {
      const Variable one = variable(entry_.local_bytes);
      symbols_[one.name] = one.at;
      tokens_.expect(";");
    } else if (tokens_.take_if(".pragma")) {
      tokens_.take();
      tokens_.expect(";");
    } else {
      label_or_instruction();
    }
  }

  void declaration() {
    const std::uint8_t bytes = type();
    do {
      const std::string name(tokens_.take().text);
      std::uint32_t count = 0;
      if (tokens_.take_if("<")) {
        count = number();
        tokens_.expect(">");
      }
      registers_.declare(name, count, bytes);
    } while (tokens_.take_if(","));
    tokens_.expect(";");
  }

  /// A source of an instruction, of which a constant takes so many bytes.
  Place source(std::uint8_t bytes) {
    if (const auto value = literal()) return registers_.constant(*value, bytes);
    const Token token = tokens_.take();
    if (const auto found = registers_.find(token.text)) return *found;
    if (const auto symbol = symbols_.find(token.text); symbol != symbols_.end())
      return registers_.constant(symbol->second, bytes);
    throw std::runtime_error("PTX, line " + std::to_string(token.line) +
                             ": no register or variable '" + std::string(token.text) + "'");
  }
  Register checked_source(std::uint8_t bytes) {
    const Place place = source(bytes);
    if (place.bytes != bytes) tokens_.fail("a register of another size before it");
    return place.at;
  }
  /// Of a conversion, which may take the lower half of a wider register.
  Register narrowed_source(std::uint8_t bytes, std::uint32_t line) {
    const Place place = source(bytes);
    if (place.bytes == 8 && bytes == 4) {
      Instruction half{.from = {place.at}, .line = line};
      half.function = find_operation("low.b64")->function;
      half.to = registers_.allocate(bytes);
      entry_.code.push_back(half);
      return half.to;
    }
    if (place.bytes != bytes) tokens_.fail("a register of another size before it");
    return place.at;
  }
  Place destination() {
    const auto found = registers_.find(tokens_.peek().text);
    if (!found) tokens_.fail("a register");
    tokens_.take();
    return *found;
  }
  Register checked_destination(std::uint8_t bytes) {
    const Place place = destination();
    if (place.bytes != bytes) tokens_.fail("a register of another size before it");
    return place.at;
  }
  void comma() { tokens_.expect(","); }

  void label_or_instruction() {
    Instruction one;
    if (tokens_.take_if("@")) {
      one.guarded = true;
      one.unless = tokens_.take_if("!");
      one.guard = checked_source(0);
    }
    const Token word = tokens_.take();
    if (!one.guarded && tokens_.take_if(":")) {
      labels_[std::string(word.text)] = static_cast<std::uint32_t>(entry_.code.size());
      return;
    }
    one.line = word.line;
    instruction(std::string(word.text), one);
    tokens_.expect(";");
  }

  void instruction(const std::string& name, Instruction& one) {
    if (name == "griddepcontrol.launch_dependents") return;  // grids run one by one
    if (name == "griddepcontrol.wait") {
      one.kind = Kind::earlier;
    } else if (name == "bra" || name == "bra.uni") {
      one.kind = Kind::branch;
      branches_.emplace_back(entry_.code.size(), tokens_.take().text);
    } else if (name == "ret" || name == "exit") {
      one.kind = Kind::leave;
    } else if (name == "bar.sync") {
      one.kind = Kind::barrier;
      tokens_.expect("0");  // of all threads
    } else if (name == "bar.red.or.pred") {
      one.kind = Kind::barrier_or;
      one.to = checked_destination(0);
      comma();
      tokens_.expect("0");
      comma();
      one.from[0] = checked_source(0);
    } else if (name.starts_with("ld.") || name.starts_with("st.")) {
      memory(name, one);
    } else if (name == "atom.global.cas.b64") {
      one.kind = Kind::compare;
      one.space = Space::global;
      one.bytes = one.register_bytes = 8;
      one.to = checked_destination(8);
      comma();
      address(one);
      for (int i = 1; i <= 2; ++i) {
        comma();
        one.from[i] = checked_source(8);
      }
    } else if (name == "mov.b64" && tokens_.is("{")) {
      return halves(one);
    } else {
      computation(name, one);
    }
    entry_.code.push_back(one);
  }

  void computation(std::string name, Instruction& one) {
    const Place to = destination();
    comma();
    if (name == "mov.b64" && tokens_.is("{")) {
      name = "pack.b64";
      tokens_.take();
    }
    const Operation* operation = find_operation(name);
    if (operation == nullptr)
      throw std::runtime_error("PTX, line " + std::to_string(one.line) + ": instruction '" + name +
                               "', which is not known here");
    one.function = operation->function;
    one.to = to.at;
    one.multiplies =
        name.starts_with("fma.") || (name.starts_with("mul.") && name.find(".f") != name.npos);
    if (to.bytes != operation->to) tokens_.fail("a result of another size before it");
    for (std::uint8_t i = 0; i < operation->sources; ++i) {
      if (i > 0) comma();
      one.from[i] = name.starts_with("cvt.") ? narrowed_source(operation->from[i], one.line)
                                             : checked_source(operation->from[i]);
    }
    if (name == "pack.b64") tokens_.expect("}");
  }

  /// mov.b64 {low, high}, from
  void halves(Instruction& one) {
    tokens_.expect("{");
    const Register low = checked_destination(4);
    comma();
    const Register high = checked_destination(4);
    tokens_.expect("}");
    comma();
    one.from[0] = checked_source(8);
    for (const auto& [name, to] : {std::pair{"low.b64", low}, {"high.b64", high}}) {
      one.function = find_operation(name)->function;
      one.to = to;
      entry_.code.push_back(one);
    }
  }

  /// [register + offset], [variable + offset], with any sign of the offset.
  void address(Instruction& one) {
    tokens_.expect("[");
    const Token base = tokens_.take();
    if (const auto found = registers_.find(base.text)) {
      one.from[0] = found->at;
      one.is_narrow = one.space == Space::shared && found->bytes == 4;
      if (found->bytes != 8 && !one.is_narrow) tokens_.fail("an address of another size before it");
    } else if (const auto symbol = symbols_.find(base.text); symbol != symbols_.end()) {
      one.absolute = true;
      one.offset = static_cast<std::int64_t>(symbol->second);
    } else {
      tokens_.fail("a register or a variable before it");
    }
    if (tokens_.take_if("+")) {
      const auto offset = literal();
      if (!offset) tokens_.fail("an offset");
      one.offset += static_cast<std::int64_t>(*offset);
    }
    tokens_.expect("]");
  }

  void element(Instruction& one, std::uint8_t i) {
    const Place place = one.kind == Kind::load ? destination() : source(one.bytes);
    if (place.bytes < one.bytes) tokens_.fail("a wider register before it");
    if (i > 0 && place.bytes != one.register_bytes) tokens_.fail("registers of one size before it");
    one.register_bytes = place.bytes;
    one.elements[i] = place.at;
  }
  void elements(Instruction& one) {
    if (one.count == 1 && !tokens_.is("{")) return element(one, 0);
    tokens_.expect("{");
    for (std::uint8_t i = 0; i < one.count; ++i) {
      if (i > 0) comma();
      element(one, i);
    }
    tokens_.expect("}");
  }

  /// ld.global.nc.v4.f32 and the like.
  void memory(const std::string& name, Instruction& one) {
    one.kind = name.starts_with("ld") ? Kind::load : Kind::store;
    bool has_space = false;
    for (std::size_t at = 3; at < name.size();) {
      const std::size_t end = std::min(name.find('.', at), name.size());
      const std::string part = name.substr(at, end - at);
      at = end + 1;
      static const std::map<std::string, Space> spaces{{"param", Space::parameter},
                                                       {"global", Space::global},
                                                       {"shared", Space::shared},
                                                       {"local", Space::local}};
      if (const auto space = spaces.find(part); space != spaces.end()) {
        one.space = space->second;
        has_space = true;
      } else if (part == "volatile") {
        one.is_volatile = true;
      } else if (part == "v2" || part == "v4") {
        one.count = part == "v2" ? 2 : 4;
      } else if (const auto bytes = bytes_of_type(part); bytes && *bytes > 0) {
        one.bytes = *bytes;
        one.is_signed = part.starts_with("s");
      } else if (part != "nc") {
        has_space = false;
        break;
      }
    }
    // Threads that touch the same words of shared memory are looked for in words.
    if (!has_space || one.bytes == 0 || (one.space == Space::shared && one.bytes < 4))
      throw std::runtime_error("PTX, line " + std::to_string(one.line) + ": access '" + name +
                               "', which is not known here");
    if (one.kind == Kind::load) {
      elements(one);
      comma();
      address(one);
    } else {
      address(one);
      comma();
      elements(one);
    }
  }

  Entry& entry_;
  Registers registers_;
  std::map<std::string, std::uint64_t, std::less<>> symbols_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
};

/// [.align n] .type name [ '[' count ']' ] [ = value | = { value, ... } ] ;
void module_variable(Tokens& tokens, Module& module) {
  Declarations one(tokens);
  std::uint32_t end = 0;
  const auto [name, at, bytes] = one.variable(end);
  std::vector<std::uint64_t>& words = module.variables[name];
  words.assign((end + 7) / 8, 0);
  if (tokens.take_if("=")) {
    const bool many = tokens.take_if("{");
    auto* to = reinterpret_cast<std::byte*>(words.data());
    do {
      const auto value = one.literal();
      if (!value || to + bytes > reinterpret_cast<std::byte*>(words.data()) + end)
        tokens.fail("no more than as many numbers");
      std::memcpy(to, &*value, bytes);
      to += bytes;
    } while (many && tokens.take_if(","));
    if (many) tokens.expect("}");
  }
  tokens.expect(";");
}

}  // namespace

Module parse(std::string_view text) {
  Module module;
  Tokens tokens(text);
  while (!tokens.at_end()) {
    if (tokens.take_if(".target")) {
      module.target = tokens.take().text;
      while (tokens.take_if(",")) tokens.take();
    } else if (tokens.take_if(".version") || tokens.take_if(".address_size")) {
      tokens.take();
      while (tokens.take_if(",")) tokens.take();
    } else if (tokens.take_if(".global") || tokens.take_if(".const")) {
      module_variable(tokens, module);
    } else if (tokens.take_if(".visible") || tokens.take_if(".weak")) {
      continue;
    } else if (tokens.take_if(".entry")) {
      Entry entry;
      const Token name = tokens.take();
      entry.name = name.text;
      EntryParser(tokens, module, entry).parse();
      const char* const end =
          tokens.at_end() ? text.data() + text.size() : tokens.peek().text.data();
      entry.text.assign(name.text.data(), end);
      entry.first_line = name.line;
      module.entries[entry.name] = std::move(entry);
    } else {
      tokens.fail("a kernel");
    }
  }
  return module;
}

}  // namespace ptx
