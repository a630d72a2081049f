#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

/// The message of a script that follows `$1 = InputTensor(x, float32, [2, 3]);` on line 2.
std::string error(const std::string& rest) {
  return testing::error_of([&] {
    parse("$1 = InputTensor(x, float32, [2, 3]);\n" + rest, testing::table(), "net.txt");
  });
}

TEST(Parser, FindsWhatTheResultLacks) {
  EXPECT_EQ(testing::error_of([] { parse("", testing::table()); }),
            "<script>:1:1: the end of the script; expected 'result = $…;' (hint: a script ends by "
            "naming its result)");
  EXPECT_EQ(error("$2 = relu($1);"),
            "net.txt:2:15: the end of the script; expected 'result = $…;' (hint: a script ends by "
            "naming its result)");
  EXPECT_EQ(error("result = $1; $2"), "net.txt:2:14: '$2'; expected nothing after the result");
  EXPECT_EQ(error("result = $1"),
            "net.txt:2:12: the end of the script; expected ';' after the result");
  EXPECT_EQ(error("result = ;"), "net.txt:2:10: ';'; expected '$' and a number, as in $12");
  EXPECT_EQ(error("result $1;"), "net.txt:2:8: '$1'; expected '=' after result");
  EXPECT_EQ(error("result = $2;"),
            "net.txt:2:10: unknown reference '$2'; expected a value defined above");
}

TEST(Parser, ReadsStatementsOfTheEarlierForm) {
  const auto read = [](const std::string& rest) {
    return parse("$1 = InputTensor(x, float32, [2, 3]);\n" + rest, testing::table());
  };
  EXPECT_TRUE(equal(read("$2 = ReLUNode($1); $3 = SumNode($1, $2); $4 = ReshapeNode($3, [6]);"
                         "$5 = SliceNode($4, 1, 3); result = $5;"),
                    read("$2 = relu($1); $3 = add($1, $2); $4 = reshape($3, [6]);"
                         "$5 = slice($4, 1, 3); result = $5;")));
  EXPECT_EQ(error("$2 = ReLUNode[$1];"), "net.txt:2:14: '['; expected '(' after ReLUNode");
  EXPECT_EQ(error("$2 = ReLUNode($1;"),
            "net.txt:2:17: ';'; expected ')' after the arguments of ReLUNode");
}

TEST(Parser, FindsWrongReferences) {
  EXPECT_EQ(error("$2 = relu($3);\nresult = $2;"),
            "net.txt:2:11: unknown reference '$3'; expected a value defined above");
  EXPECT_EQ(error("$2 = relu($3);\n$3 @halo(0) = relu($1);\nresult = $2;"),
            "net.txt:2:11: '$3' is used before its definition in line 3; expected definitions "
            "before uses");
  EXPECT_EQ(error("$2 = relu($2); result = $2;"),
            "net.txt:2:11: unknown reference '$2'; expected a value defined above");
  EXPECT_EQ(error("$1 = relu($1); result = $1;"),
            "net.txt:2:1: a second $1; expected a number of its own for each value (hint: the "
            "first is in line 1)");
  EXPECT_EQ(
      error("$99999999999999999999 = relu($1);"),
      "net.txt:2:1: '$99999999999999999999'; expected '$' and a number below 2^63, as in $12");
  EXPECT_EQ(error("$ = relu($1);"),
            "net.txt:2:1: '$'; expected '$' and a number below 2^63, as in $12");
}

TEST(Parser, FindsWrongDeclarations) {
  EXPECT_EQ(error("$2 = InputTensor(x, float32, [2]);"),
            "net.txt:2:18: a second input named 'x'; expected a name of its own for each of them");
  EXPECT_EQ(error("$2 = InputTensor(\"a,b\", float32, [2]);"),
            "net.txt:2:18: a value named 'a,b'; expected a name without ',', ')' or ';'");
  EXPECT_EQ(error("$2 = InputTensor(, float32, [2]);"), "net.txt:2:18: ','; expected a name");
  EXPECT_EQ(error("$2 = InputTensor(a b, float32, [2]);"),
            "net.txt:2:20: 'b'; expected ',' after a");
  EXPECT_EQ(error("$2 = InputTensor(a, float16, [2]);"),
            "net.txt:2:21: unknown element type 'float16'; expected one of float32, float64, "
            "int64, int32, uint8");
  EXPECT_EQ(error("$2 = InputTensor(a, [2]);"), "net.txt:2:21: '['; expected an element type");
  EXPECT_EQ(error("$2 = InputTensor(a, float32, [1, 1, 1, 1, 1, 1, 1, 1, 1]);"),
            "net.txt:2:30: a shape of rank 9; expected a rank of at most 8");
  EXPECT_EQ(error("$2 = InputTensor(a, float32, [99999999999999999999]);"),
            "net.txt:2:31: '99999999999999999999'; expected an integer of at most 64 bits");
  EXPECT_EQ(error("$2 = InputTensor(a, float32, [281474976710656, 2]);"),
            "net.txt:2:30: a shape of more than 2^48 elements; expected at most 2^48 elements");
  EXPECT_EQ(error("$2 = InputTensor(a, float32);"),
            "net.txt:2:28: ')'; expected ',' after the type");
  EXPECT_EQ(error("$2, $3 = InputTensor(a, float32, [2]);"),
            "net.txt:2:10: 2 values before 'InputTensor'; expected one");
  EXPECT_EQ(error("InputTensor(a, float32, [2]);"),
            "net.txt:2:1: 0 values before 'InputTensor'; expected one");
  EXPECT_EQ(error("$2 = Tensor(a, float32, [2], stack);"),
            "net.txt:2:30: unknown storage class 'stack'; expected parameter, optimizer_state, "
            "buffer, constant, "
            "input, output, activation, gradient or workspace");
  EXPECT_EQ(error("$2 @name(\"b\") = InputTensor(a, float32, [2]);"),
            "net.txt:2:1: a name, class or workspace note on a declaration; expected other notes "
            "(hint: a "
            "declaration says its name and class itself)");
}

TEST(Parser, FindsWrongCalls) {
  EXPECT_EQ(error("$2 = rela($1);"),
            "net.txt:2:6: unknown operator 'rela'; expected a registered operator (hint: did you "
            "mean 'relu'?)");
  EXPECT_EQ(error("$2 = add($1);"), "net.txt:2:6: add: 1 operands; expected 2 (a, b)");
  EXPECT_EQ(error("$2 = add($1, _);"),
            "net.txt:2:14: '_'; expected operand 'b' of add, which is not optional");
  EXPECT_EQ(error("$2 = reshape($1, [4]); $3 = add($1, $2);"),
            "net.txt:2:6: reshape: shape [4] for [2, 3]; expected as many elements");
  EXPECT_EQ(error("$2 = reshape($1, [6]); $3 = add($1, $2) @where(\"sum\");"),
            "net.txt:2:29: add 'sum': [2, 3] and [6]; expected equal shapes");
  EXPECT_EQ(error("$2 = reshape($1);"),
            "net.txt:2:6: reshape: no attribute 'shape'; expected shape=…");
  EXPECT_EQ(error("$2 = reshape($1, shape=6);"),
            "net.txt:2:6: reshape: attribute shape=6; expected a list of integers");
  EXPECT_EQ(error("$2 = reshape($1, size=[6]);"),
            "net.txt:2:18: reshape: unknown attribute 'size'; expected one of shape");
  EXPECT_EQ(error("$2 = reshape($1, shape=[6], shape=[6]);"),
            "net.txt:2:29: a second attribute 'shape'; expected each attribute once");
  EXPECT_EQ(error("$2 = reshape($1, [6], 7);"),
            "net.txt:2:23: '7'; expected ')', as all attributes of reshape are given");
  EXPECT_EQ(error("$2 = relu($1, 7);"), "net.txt:2:15: '7'; expected operands only");
  EXPECT_EQ(error("$2 = scale(by=1.5, $1);"),
            "net.txt:2:20: '$1'; expected an attribute: operands come first");
  EXPECT_EQ(error("$2 = scale($1, by=1e999);"),
            "net.txt:2:19: '1e999'; expected a number that a double can hold");
  EXPECT_EQ(error("$2 = scale($1, by=1.2.3);"), "net.txt:2:19: '1.2.3'; expected a number");
  EXPECT_EQ(error("$2 = scale($1, by=);"),
            "net.txt:2:19: ')'; expected a number, a text or a list of integers");
  EXPECT_EQ(error("$2, $3 = relu($1);"), "net.txt:2:1: 2 results of relu; expected 1");
  EXPECT_EQ(error("relu($1);"), "net.txt:2:1: 0 results of relu; expected 1");
  EXPECT_EQ(error("$2 = ;"), "net.txt:2:6: ';'; expected a statement, as in '$3 = relu($2);'");
  EXPECT_EQ(error("fill($1);"),
            "net.txt:2:1: fill: operand 'into' would change 'x', of class input; expected a value "
            "that may change (hint: what a target '$… =' takes is a value of its own)");
}

TEST(Parser, FindsWhatDoesNotEnd) {
  EXPECT_EQ(error("$2 = scale($1, by=\"no end);\nresult = $1;"),
            "net.txt:2:19: a text without an end; expected '\"' on the same line (hint: a line "
            "break is written \\n)");
  EXPECT_EQ(error("$2 = scale($1, by=\"\\q\");"),
            "net.txt:2:21: unknown escape '\\q'; expected \\\", \\\\, \\n, \\t or \\x and two "
            "hexadecimal digits");
  EXPECT_EQ(error("$2 = reshape($1, [6"),
            "net.txt:2:20: the end of the script; expected ']' after the list");
  EXPECT_EQ(error("$2 = reshape($1, [6)"), "net.txt:2:20: ')'; expected ']' after the list");
  EXPECT_EQ(error("$2 = relu($1"),
            "net.txt:2:13: the end of the script; expected ')' after the arguments of relu");
  EXPECT_EQ(error("$2 = relu($1)\nresult = $2;"),
            "net.txt:3:1: 'result'; expected ';' after the statement");
  EXPECT_EQ(error("$2"), "net.txt:2:3: the end of the script; expected '=' after $2");
  EXPECT_EQ(error("% = 3"),
            "net.txt:2:1: unexpected character '%'; expected a name, a number or punctuation");
  EXPECT_EQ(error(std::string("\0", 1)),
            "net.txt:2:1: unexpected character '\\x00'; expected a name, a number or punctuation");
}

TEST(Parser, WritesMessagesInUtf8) {
  EXPECT_EQ(error("é = 1;"),
            "net.txt:2:1: unexpected character 'é'; expected a name, a number or punctuation");
  EXPECT_EQ(error("\xc3( = 1;"),
            "net.txt:2:1: unexpected character '\\xc3'; expected a name, a number or punctuation");
  EXPECT_EQ(error("\xed\xa0\x80;"),  // half of a pair
            "net.txt:2:1: unexpected character '\\xed'; expected a name, a number or punctuation");
  EXPECT_EQ(error("$2 = scale($1, by=\"\\é\");"),
            "net.txt:2:21: unknown escape '\\é'; expected \\\", \\\\, \\n, \\t or \\x and two "
            "hexadecimal digits");
  const std::string name(59, 'x');
  EXPECT_EQ(error("$2 = \"" + name + "éé\"($1);"), "net.txt:2:6: unknown operator '" + name +
                                                       "é…'; expected a registered operator (hint: "
                                                       "register_operator adds one)");
}

TEST(Parser, FindsWrongNotes) {
  EXPECT_EQ(error("$2 @colour(red) = relu($1);"),
            "net.txt:2:5: unknown note @colour; expected @name, @batch, @class, @space, @halo, "
            "@bytes, @offset, @storage, @in, "
            "@holds or @workspace before '='");
  EXPECT_EQ(error("$2 = relu($1) @fast;"),
            "net.txt:2:16: unknown note @fast; expected @init, @forward, @backward, @update, "
            "@evaluate, @lane, @kernel "
            "or @where after a call");
  EXPECT_EQ(error("$2 = relu($1) @lane(0) @lane(1);"),
            "net.txt:2:25: a second note @lane; expected each note once");
  EXPECT_EQ(error("$2 = relu($1) @update @forward;"),
            "net.txt:2:24: a second note @forward; expected each note once");
  EXPECT_EQ(error("$2 = relu($1) @lane(-1);"), "net.txt:2:21: lane -1; expected 0 to 2147483647");
  EXPECT_EQ(error("$2 @halo(-1) = relu($1);"), "net.txt:2:1: a halo of -1; expected 0 to 1048576");
  EXPECT_EQ(error("$2 @bytes(-1) = relu($1);"), "net.txt:2:1: -1 bytes; expected 0 to 2^60");
  EXPECT_EQ(error("$2 @space(tpu, 0, host) = relu($1);"),
            "net.txt:2:11: device 'tpu'; expected cpu or cuda");
  EXPECT_EQ(error("$2 @space(cpu, -1, host) = relu($1);"),
            "net.txt:2:16: device number -1; expected 0 to 2147483647");
  EXPECT_EQ(error("$2 @space(cpu, 0, disk) = relu($1);"),
            "net.txt:2:19: memory 'disk'; expected host or device");
  EXPECT_EQ(error("$2 @space(cpu, 0, host, -1) = relu($1);"),
            "net.txt:2:25: a capacity of -1; expected at least 0 bytes");
  EXPECT_EQ(error("$2 @bytes(64) = reshape($1, [6]);"),
            "net.txt:2:1: a note on the storage of a view; expected such notes on its owner (hint: "
            "a view lies in its "
            "owner's storage)");
  EXPECT_EQ(error("$2 @bytes(64) = relu($1); $3 @in($2) @bytes(65) = relu($2);"),
            "net.txt:2:34: storage 'relu' (65 bytes, cpu:0/host) merged into 'relu' (64 bytes, "
            "cpu:0/host); expected a "
            "target of the same space and at least the same size");
  EXPECT_EQ(
      error("$2, $3 @workspace(8), $4 @workspace(8) = relu($1);"),
      "net.txt:2:1: 1 results and 2 workspaces of relu; expected 1 and at most one workspace");
}

TEST(Parser, WantsASpaceForAllOrForNone) {
  const std::string half =
      ":1: a value without a space, where others have one; expected @space(…) "
      "for all but views, or for none";
  EXPECT_EQ(error("$2 @space(cuda, 0, device) = relu($1); result = $2;"), "net.txt:1" + half);
  const auto script = [](const std::string& rest) {
    return testing::error_of([&] {
      parse("$1 @space(cuda, 0, device) = InputTensor(x, float32, [4]);\n" + rest, testing::table(),
            "net.txt");
    });
  };
  EXPECT_EQ(script("$2 = relu($1); result = $2;"), "net.txt:2" + half);
  EXPECT_EQ(script("$2 @space(cpu, 0, host), $3 @workspace(64) = relu($1); result = $2;"),
            "net.txt:2:26" + half.substr(2));
  // A view lies where its owner does.
  EXPECT_EQ(script("$2 = reshape($1, shape=[2, 2]);\n$3 @space(cuda, 0, device) = relu($2);\n"
                   "result = $3;"),
            "(no error)");
}

TEST(Parser, PointsAtWhatTheVerifierFinds) {
  EXPECT_EQ(error("$2 = relu($1);\n$3 @in($2) = relu($2);\n$4 = add($2, $3);\nresult = $4;"),
            "net.txt:4:6: add #2: reads value 'relu' (#1) after relu #1 took its bytes; expected "
            "no reader after an "
            "in-place result");
  EXPECT_EQ(error("$2 @bytes(8) = relu($1);\nresult = $2;"),
            "net.txt:2:1: value 'relu' (#1): 24 bytes at offset 0 of storage 'relu' of 8 bytes; "
            "expected values inside "
            "their storage");
}

/// The message of a script of real operators that follows four lines of declarations.
std::string version_error(const std::string& rest) {
  return testing::error_of([&] {
    parse(
        "$1 = BufferTensor(state, float32, [4, 3]);\n"
        "$2 = InputTensor(rows, float32, [2, 3]);\n"
        "$3 = InputTensor(begin, int64, [1]);\n"
        "$4 = slice($1, 0, 3);\n" +
            rest,
        operators(), "net.txt");
  });
}

TEST(Parser, PointsAtASecondUpdateOfAVersion) {
  EXPECT_EQ(version_error("$5 = replace_slice($1, $2, $3);\n"
                          "$6 = ReplaceSliceNode($1, $2, $3);\nresult = $5;"),
            "net.txt:6:6: replace_slice #2: a second new version of 'state', which replace_slice "
            "#1 has replaced; expected one update of each version of what persists (hint: "
            "update that op's result instead)");
  // Rows 0 to 2, and 2 to 3: one row is in both.
  EXPECT_EQ(
      version_error("$5 = slice($1, 2, 4);\n$6 = replace_slice($5, $2, $3);\n"
                    "$7 = replace_slice($4, $2, $3) @where(\"second\");\nresult = $6;"),
      "net.txt:7:6: second: a second new version of 'slice', which replace_slice #2 has "
      "replaced; expected one update of each version of what persists (hint: update that op's "
      "result instead)");
  // Rows of their own, and a version of a version.
  EXPECT_EQ(version_error("$5 = slice($1, 3, 4);\n$6 = slice($2, 0, 1);\n"
                          "$7 = replace_slice($4, $2, $3);\n$8 = replace_slice($5, $6, $3);\n"
                          "$9 = replace_slice($7, $2, $3);\nresult = $9;"),
            "(no error)");
}

TEST(Parser, PointsAtAnUpdateInABlock) {
  EXPECT_EQ(version_error("$5 = if($3) {\n"
                          "  $6 = replace_slice($1, $2, $3);\n"
                          "  yield $6;\n"
                          "} else {\n  yield $1;\n}\nresult = $5;"),
            "net.txt:6:8: replace_slice #1: a new version of buffer 'state', made in a block; "
            "expected one made outside of blocks (hint: yield the value, and update what persists "
            "behind the block)");
}

}  // namespace
}  // namespace arenite::graph
