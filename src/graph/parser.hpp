// Recursive descent over the script's tokens: one token ahead, recursion only into blocks, which
// nest at most max_region_depth deep. Builds the graph through a Builder, so that shapes and types
// are checked as it reads.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/formula.hpp>

#include <map>
#include <unordered_map>
#include <vector>

#include "src/graph/lexer.hpp"
#include "src/graph/notes.hpp"

namespace arenite::graph {

/// The operator that a statement stands for.
std::string operator_of(const std::string& statement);

class Parser {
 public:
  Parser(std::string_view text, const OperatorTable& table, std::string_view filename);

  Graph run();

  /// For a text that is a call alone, the right side of a statement: what it would make of these
  /// values, which it has as $1, $2, …
  std::vector<ResultType> infer(std::vector<Value> operands);

  /// For a text that declares a formula and nothing else.
  WrittenFormula formula_alone();

  /// As Statements has them (parser_pieces.cpp), but that what throws may have added something.
  std::vector<std::int64_t> append(std::string_view statement, std::span<const std::int64_t> values,
                                   bool with_results);
  std::vector<std::int64_t> begin_block(std::string_view call,
                                        std::span<const std::int64_t> values);
  std::vector<std::int64_t> end_block(std::span<const std::int64_t> yields);
  const Value& value(std::int64_t number) const;
  Graph graph(const std::vector<std::int64_t>& outputs);

 private:
  struct Target {
    std::int64_t number = 0;
    Position position;
    ValueNotes notes;
    bool has_notes = false;
  };
  struct Call {
    std::string word;
    Position position;
    std::shared_ptr<const OperatorDefinition> definition;
    std::vector<ValueId> operands;
    Attributes attributes;
    OpNotes notes;
    bool has_formula = false;  ///< in braces behind it
    std::vector<RegionId> regions;
    std::vector<StorageId> carried;  ///< what its blocks make new versions of
  };

  // Operators of the script's own (parser_formulas.cpp)
  WrittenFormula written_formula();
  void define_formula(const std::vector<Target>& left);
  /// By its name, in the script or in the table; nullptr: there is none.
  std::shared_ptr<const OperatorDefinition> find_operator(const std::string& name) const;
  std::shared_ptr<const OperatorDefinition> definition_of(const std::string& statement) const;

  // Statements (parser.cpp)
  void check_whole(Position end);
  void statement();
  void result();
  std::vector<ValueId> outputs(const std::string& of);
  std::vector<Target> targets();
  Call call();
  void formula(Call& call);
  void argument(Call& call, std::size_t& positional);
  void absent_operand(const OperatorDefinition& definition, std::size_t index);
  [[noreturn]] void no_more_attributes(const Token& found, const Call& call) const;
  void set_context(const OpNotes& notes);
  void merge(const Target& target);
  void finish(const std::vector<Target>& written, const Call& call);

  // Attributes (parser_attributes.cpp)
  /// Reads the value of one.
  void attribute(Attributes& into, const AttributeSchema& schema);
  /// The same where it is a name or a text that is read already.
  void word_attribute(Attributes& into, const AttributeSchema& schema, const Token& word);
  /// The upper bound of the size of this name.
  std::int64_t size(const Token& name) const;

  // Declarations (parser_declarations.cpp)
  struct Dimensions {
    std::vector<std::int64_t> sizes;
    std::vector<std::string> names;  // empty: none is named
  };
  void declaration(const std::vector<Target>& targets, StorageClass cls, bool class_follows);
  Dimensions dimensions(const std::string& value);
  /// How what persists begins, "zeros" or "uniform(-1, 1, seed=3)", then "frozen".
  void beginning(Value& declared, StorageClass cls);
  FirstValue first_value();
  std::int64_t bound(const Token& name, const std::string& value);

  // Training (parser_training.cpp)
  struct Reference {
    ValueId value;
    Position position;
  };
  void gradients(const std::vector<Target>& targets);
  void training(const std::vector<Target>& targets);
  void refuse_in_block(const Token& statement) const;
  std::vector<Reference> references();
  ValueId loss();
  std::shared_ptr<const OperatorDefinition> optimizer();
  double number();
  double learning_rate();
  double limit();
  std::string schedule();
  std::vector<ValueId> parameters();
  ParameterGroup group(const OperatorDefinition* optimizer);
  Averaging averaging();
  void optimizer_attribute(const Token& name, const OperatorDefinition* optimizer,
                           Attributes& attributes);
  /// What `train` asks for can be done: said here, while the script's lines are known.
  void check_training() const;

  // Entries (parser_entries.cpp)
  void entry(const std::vector<Target>& left);
  void entry_setting(Entry& made);
  void check_entries() const;

  // Statements one by one (parser_pieces.cpp)
  void read(std::string_view piece, std::span<const std::int64_t> values);
  void expect_end_of_piece();
  std::vector<std::int64_t> begin_region();
  Target next_target();
  std::vector<Target> left_side(const std::vector<Target>& written, std::size_t results);
  ValueId valued(std::int64_t number) const;
  std::int64_t number_of(const Token& reference) const;

  // Blocks (parser_blocks.cpp)
  void blocks(Call& call);
  void carry(Call& call);
  void block(Call& call);
  std::vector<ValueId> yielded();

  // Statements without targets (parser_versions.cpp)
  /// What numbers stand for since such a statement: values of one storage, which all show the same.
  struct Renewed {
    ValueId whole;                     ///< what the storage was declared or made for
    ValueId now;                       ///< its last version
    std::map<ValueId, ValueId> views;  ///< of what numbers stood for, in the last version
  };
  void renew(const Call& call, OpId op);
  void renew(ValueId value, ValueId version);
  Renewed& renewed(ValueId value);
  ValueId current(ValueId value);
  StorageId origin(ValueId value) const;
  ValueId flat(ValueId value);
  ValueId shaped(ValueId value, const Shape& shape);
  void refuse_named_size(ValueId view) const;
  /// Storages from outside of which the blocks that begin here make new versions.
  std::vector<StorageId> renewed_in_blocks(const OperatorDefinition& holder);

  // Notes (parser_notes.cpp)
  void value_note(ValueNotes& notes);
  void op_note(OpNotes& notes);
  Space space();
  bool is_first(const std::string& what, const std::string& first, const std::string& second);
  int number(const std::string& what);
  template <class T>
  void set_once(std::optional<T>& note, const Token& name, T value);

  // Tokens
  void advance() { token_ = lexer_.next(); }
  bool accept(char symbol);
  void expect(char symbol, std::string_view after);
  std::int64_t integer(std::string_view what);
  std::string text(std::string_view what);
  std::string word(std::string_view what);
  /// "[", what `one` reads any number of times, "]".
  template <class One>
  void list(One one);
  Token reference_token();
  ValueId defined(const Token& reference) const;
  ValueId resolve(const Token& reference);
  ValueId reference() { return resolve(reference_token()); }
  [[noreturn]] void unexpected(std::string expected, std::string hint = {}) const;
  [[noreturn]] void unknown_reference(const Token& reference) const;
  [[noreturn]] void unknown_attribute(const Token& name,
                                      const OperatorDefinition& definition) const;
  void define(const Target& target, ValueId id);
  /// Gives a value what its notes say.
  void annotate(const Target& target, ValueId id, bool is_view = false);
  void check_spaces() const;

  /// Runs `action`; an Error of it gets the position, or that within the statement's formula.
  template <class Action>
  auto at(Position position, Action action) const;
  [[noreturn]] void refuse_at(Position position, ErrorText text) const;
  /// What stands behind a brace.
  std::string braced();

  std::string_view script_;
  std::string filename_;
  Lexer lexer_;
  Token token_;
  Graph graph_;
  Builder builder_;
  struct Definition {
    ValueId value;
    Position position;
  };
  std::unordered_map<std::int64_t, Definition> definitions_;
  std::map<std::string, std::shared_ptr<const OperatorDefinition>> written_;  // formulas
  std::map<StorageId, Renewed> renewed_;
  std::map<StorageId, StorageId> origins_;                ///< of the storages of versions
  std::vector<Position> op_positions_, value_positions_;  // by id
  std::unordered_map<std::string, std::int64_t> bounds_;  // of named sizes
  Phase default_phase_ = Phase::forward;                  // of statements without a note
  std::vector<ValueId> gradients_;                        // results of grad
  std::optional<Position> formula_;                       // where the statement's begins
  Position training_position_;
  std::vector<Position> entry_positions_;
  // Of a script that comes statement by statement:
  bool in_pieces_ = false;
  std::string piece_;                // the statement
  std::vector<std::int64_t> given_;  // what its $1, $2, … are
  bool numbers_results_ = false;     // which are numbered on
  std::int64_t next_number_ = 1;
  std::vector<std::int64_t> fresh_;  // of its results
  struct OpenBlock {
    Call call;
    std::int64_t first_number;  ///< of the values in the block
    /// Outside of it.
    std::map<StorageId, Renewed> renewed;
    std::map<StorageId, StorageId> origins;
  };
  std::vector<OpenBlock> open_blocks_;  // innermost last

  bool spaces_given_ = false;              // some value has a note of its space
  std::optional<Position> space_missing_;  // the first that has none, and is no view
};

template <class One>
void Parser::list(One one) {
  if (!accept('[')) unexpected("'[' and integers");
  if (accept(']')) return;
  do {
    one();
  } while (accept(','));
  expect(']', "the list");
}

template <class Action>
auto Parser::at(Position position, Action action) const {
  try {
    return action();
  } catch (const Error& error) {
    refuse_at(position, error.text());
  }
}

}  // namespace arenite::graph
