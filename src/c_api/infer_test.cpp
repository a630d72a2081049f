#include <arenite/arenite.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace arenite {
namespace {

arenite_port port(const char* name, std::initializer_list<std::int64_t> shape,
                  arenite_type type = ARENITE_FLOAT32) {
  arenite_port made{
      .name = name, .type = type, .rank = static_cast<int>(shape.size()), .shape = {}, .bytes = 0};
  std::copy(shape.begin(), shape.end(), made.shape);
  return made;
}

/// "float32 [2, 3] of 24 bytes" for each result, or what is wrong.
std::string infer(const char* call, const std::vector<arenite_port>& operands) {
  const char* const types[] = {"float32", "float64", "int64", "int32", "uint8"};
  arenite_port results[3];
  size_t count = 0;
  char* message = nullptr;
  if (arenite_infer(call, operands.data(), operands.size(), results, 3, &count, &message) !=
      ARENITE_OK) {
    std::string text = message;
    arenite_free(message);
    return text;
  }
  EXPECT_EQ(message, nullptr);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(results[i].name, nullptr);
    text += (text.empty() ? "" : ", ") + std::string(types[results[i].type]) + " [";
    for (int axis = 0; axis < results[i].rank; ++axis)
      text += (axis > 0 ? ", " : "") + std::to_string(results[i].shape[axis]);
    text += "] of " + std::to_string(results[i].bytes) + " bytes";
  }
  return text;
}

TEST(Infer, SaysWhatAnOperatorMakes) {
  const arenite_port image = port("image", {2, 8, 8, 3}), weight = port(nullptr, {3, 3, 3, 4});
  EXPECT_EQ(infer("conv2d($1, $2, stride=[2, 2], padding=[1, 1])", {image, weight}),
            "float32 [2, 4, 4, 4] of 512 bytes");
  EXPECT_EQ(infer("max_pool2d($1, kernel=[2, 2], stride=[2, 2])", {image}),
            "float32 [2, 4, 4, 3] of 384 bytes, uint8 [2, 4, 4, 3] of 96 bytes");
  EXPECT_EQ(infer("full(shape=[3], value=1, type=int64)", {}), "int64 [3] of 24 bytes");
  EXPECT_EQ(infer("assign($1, $2)", {weight, weight}), "float32 [3, 3, 3, 4] of 432 bytes");
}

TEST(Infer, TakesBlocks) {
  const arenite_port n = port("n", {1}, ARENITE_INT64), x = port("x", {2}), y = port("y", {3});
  EXPECT_EQ(infer("if($1) { yield $2, $1; } else { yield $3, $1; }", {n, x, x}),
            "float32 [2] of 8 bytes, int64 [1] of 8 bytes");
  EXPECT_EQ(infer("loop($1, _, $2, max_trips=4) ($5, $6) { yield $6; }", {n, x}),
            "float32 [2] of 8 bytes");
  EXPECT_EQ(infer("if($1) { yield $2; } else { yield $3; }", {n, x, y}),
            "if: result 1 as float32[2] and as float32[3]; expected one type and shape from both "
            "blocks");
}

TEST(Infer, SaysWhatIsWrong) {
  const arenite_port x = port("x", {2, 3}), w = port(nullptr, {4, 3});
  EXPECT_EQ(infer("matmul($1, $2)", {x, w}),
            "matmul: operand 'b' ($2) of shape [4, 3]; expected [3, 3], [n, k] for a [2, 3]");
  EXPECT_EQ(infer("mul($1, $2)", {x, port("d", {2, 3}, ARENITE_FLOAT64)}),
            "mul: operand 'b' (d) of type float64; expected float32");
  EXPECT_EQ(
      infer("rellu($1)", {x}),
      "unknown operator 'rellu'; expected a registered operator (hint: did you mean 'relu'?)");
  EXPECT_EQ(infer("relu($1, alpha=1)", {x}),
            "relu: unknown attribute 'alpha'; expected no attributes");
  EXPECT_EQ(infer("slice($1, begin=0.5, end=1)", {x}),
            "slice: attribute begin=0.5; expected an integer");
  EXPECT_EQ(infer("relu(_)", {}), "'_'; expected operand 'x' of relu, which is not optional");
  EXPECT_EQ(infer("relu($2)", {x}), "unknown reference '$2'; expected a value defined above");
  EXPECT_EQ(infer("relu($1", {x}),
            "the end of the script; expected ')' after the arguments of relu");
  EXPECT_EQ(infer("relu($1);", {x}), "';'; expected nothing after the call");
  EXPECT_EQ(infer("", {x}), "the end of the script; expected a statement, as in '$3 = relu($2);'");
}

TEST(Infer, RefusesWhatIsNoOperand) {
  const std::string expected = "; expected one of arenite_type, and a rank of 0 to 8";
  arenite_port x = port("x", {2});
  x.rank = 9;
  EXPECT_EQ(infer("relu($1)", {x}), "$1 of type 0 and rank 9" + expected);
  x.rank = -1;
  EXPECT_EQ(infer("relu($1)", {x}), "$1 of type 0 and rank -1" + expected);
  EXPECT_EQ(infer("relu($1)", {port("x", {-2})}),
            "dimension 0 is -2; expected a size of at least 0");
  EXPECT_EQ(infer("relu($1)", {port("x", {2}, static_cast<arenite_type>(5))}),
            "$1 of type 5 and rank 1" + expected);
}

TEST(Infer, RefusesNullAndTooLittleRoom) {
  const arenite_port x = port("x", {2});
  arenite_port result;
  size_t count = 7;
  const auto refused = [&](const char* call, const arenite_port* operands, arenite_port* results,
                           size_t room, size_t* place) {
    char* message = nullptr;
    EXPECT_EQ(arenite_infer(call, operands, 1, results, room, place, &message), ARENITE_INVALID);
    std::string text = message;
    arenite_free(message);
    return text;
  };
  EXPECT_EQ(refused(nullptr, &x, &result, 1, &count), "null for the call; expected a pointer");
  EXPECT_EQ(refused("relu($1)", nullptr, &result, 1, &count),
            "null for the operands; expected a pointer");
  EXPECT_EQ(refused("relu($1)", &x, nullptr, 1, &count),
            "null for the results; expected a pointer");
  EXPECT_EQ(refused("relu($1)", &x, &result, 1, nullptr),
            "null for the number of results; expected a pointer");
  EXPECT_EQ(refused("relu($1)", &x, nullptr, 0, &count), "room for 0 results; expected 1");
  EXPECT_EQ(count, 7U);
  // Nobody has to look at what is wrong.
  EXPECT_EQ(arenite_infer("", &x, 1, &result, 1, &count, nullptr), ARENITE_INVALID);
}

}  // namespace
}  // namespace arenite
