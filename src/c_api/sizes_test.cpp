// Sizes that scripts leave open, as C gives them.
#include <arenite/arenite.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace arenite {
namespace {

const char* const script = R"(
  $1 = InputTensor(x, float32, [rows<=4, columns<=6]);
  $2 = reshape($1, [columns, rows]);
  $3 = relu($2);
  result = $3;)";

class SizesInC : public ::testing::Test {
 protected:
  SizesInC() {
    const arenite_session_options one{.device = "cpu", .workers = 1};
    EXPECT_EQ(arenite_session_create(&one, &session_, nullptr), ARENITE_OK);
    EXPECT_EQ(arenite_options_create(&options_, nullptr), ARENITE_OK);
  }
  ~SizesInC() override {
    arenite_model_free(model);
    arenite_options_free(options_);
    arenite_session_destroy(session_);
  }
  SizesInC(const SizesInC&) = delete;
  SizesInC& operator=(const SizesInC&) = delete;

  /// What is wrong with it, "" where nothing is.
  std::string set(const char* value) {
    char* message = nullptr;
    arenite_options_set(options_, "size", value, &message);
    return taken(message);
  }
  std::string compile() {
    char* message = nullptr;
    arenite_model_free(std::exchange(model, nullptr));
    arenite_model_create(session_, script, nullptr, 0, options_, &model, &message);
    return taken(message);
  }

  static std::string taken(char* message) {
    const std::string text = message == nullptr ? "" : message;
    arenite_free(message);
    return text;
  }

  arenite_model* model = nullptr;

 private:
  arenite_session* session_ = nullptr;
  arenite_options* options_ = nullptr;
};

TEST_F(SizesInC, MakeAModelOfThatSize) {
  EXPECT_EQ(set("rows=2"), "");
  EXPECT_EQ(set("columns=6"), "");
  EXPECT_EQ(set("columns=3"), "");  // instead
  EXPECT_EQ(compile(), "");
  arenite_port port;
  ASSERT_EQ(arenite_model_output(model, 0, &port, nullptr), ARENITE_OK);
  EXPECT_EQ((std::vector<std::int64_t>{port.shape[0], port.shape[1]}),
            (std::vector<std::int64_t>{3, 2}));
  const std::vector<float> x{1, -1, 2, -2, 3, -3};
  std::vector<float> y(6);
  const arenite_tensor input{"x", x.data(), 24};
  void* const place = y.data();
  ASSERT_EQ(arenite_model_evaluate(model, &input, 1, &place, 1, nullptr), ARENITE_OK);
  EXPECT_EQ(y, (std::vector<float>{1, 0, 2, 0, 3, 0}));
}

TEST_F(SizesInC, AreSaidWithEachRun) {
  ASSERT_EQ(set("columns=3"), "");
  ASSERT_EQ(compile(), "");
  const auto evaluated = [&](std::vector<arenite_size> sizes, std::vector<float> x) {
    std::vector<float> y(x.size());
    const arenite_tensor input{"x", x.data(), static_cast<std::int64_t>(4 * x.size())};
    void* const place = y.data();
    char* message = nullptr;
    arenite_model_run(model, "evaluate", sizes.data(), sizes.size(), &input, 1, &place, 1,
                      &message);
    return std::pair(taken(message), y);
  };
  using Result = std::pair<std::string, std::vector<float>>;
  EXPECT_EQ(evaluated({{"rows", 1}}, {1, -1, 2}), Result("", {1, 0, 2}));
  EXPECT_EQ(evaluated({{"rows", 2}}, {1, -1, 2, -2, 3, -3}), Result("", {1, 0, 2, 0, 3, 0}));
  EXPECT_EQ(evaluated({{"rows", 1}}, {-1, 1, -2}), Result("", {0, 1, 0}));
  EXPECT_EQ(evaluated({}, {1, 2, 3}).first,
            "12 bytes of input 'x'; expected 48, as it is float32 [4, 3]");
  EXPECT_EQ(evaluated({{"rows", 1}, {"rows", 1}}, {1, 2, 3}).first,
            "size 'rows' twice; expected each once");
  EXPECT_EQ(evaluated({{"rows", 5}}, {1, 2, 3}).first,
            "size rows=5; expected 1 to 4, its upper bound");
  arenite_port port;
  const arenite_size two{"rows", 2};
  ASSERT_EQ(arenite_model_output_at(model, "evaluate", 0, &two, 1, &port, nullptr), ARENITE_OK);
  EXPECT_EQ(port.name, nullptr);
  EXPECT_EQ((std::vector<std::int64_t>{port.shape[0], port.shape[1]}),
            (std::vector<std::int64_t>{3, 2}));
  const arenite_size three{"rows", 3};
  ASSERT_EQ(arenite_model_prepare(model, &three, 1, nullptr), ARENITE_OK);
  char* json = nullptr;
  ASSERT_EQ(arenite_model_programs(model, &json, nullptr), ARENITE_OK);
  const std::string programs =
      std::regex_replace(taken(json), std::regex(R"("milliseconds":[^,]*,)"), "");
  const auto evaluate = [](int rows, int runs) {
    return R"({"entry":"evaluate","sizes":{"rows":)" + std::to_string(rows) +
           R"(},"arena_bytes":0,"fit":"own plan","runs":)" + std::to_string(runs) + "}";
  };
  EXPECT_EQ(programs,
            R"({"sizes":{"rows":4},"inputs":{"x":["rows",""]},"entries":[{"name":"evaluate",)"
            R"("inputs":["x"],"outputs":["output_0"]}],"programs":[)" +
                evaluate(4, 0) + "," + evaluate(1, 2) + "," + evaluate(2, 1) + "," +
                evaluate(3, 0) + "]}");
}

TEST_F(SizesInC, HaveNothingOnceTheModelIsClosed) {
  ASSERT_EQ(compile(), "");
  EXPECT_EQ(arenite_model_close(model, nullptr), ARENITE_OK);
  EXPECT_EQ(arenite_model_close(model, nullptr), ARENITE_OK);
  char* message = nullptr;
  EXPECT_EQ(arenite_model_run(model, "evaluate", nullptr, 0, nullptr, 0, nullptr, 0, &message),
            ARENITE_INVALID);
  EXPECT_EQ(taken(message), "a model that was closed; expected one that is open");
  EXPECT_EQ(arenite_model_run(model, "fit", nullptr, 0, nullptr, 0, nullptr, 0, &message),
            ARENITE_INVALID);
  EXPECT_EQ(taken(message), "a model that was closed; expected one that is open");
}

TEST_F(SizesInC, MustBeThoseOfTheScript) {
  EXPECT_EQ(set("rows=2"), "");
  EXPECT_EQ(set("columns=7"), "");
  EXPECT_EQ(compile(), "size columns=7; expected 1 to 6, its upper bound");
  EXPECT_EQ(set("columns=-1"), "");
  EXPECT_EQ(compile(), "size columns=-1; expected 1 to 6, its upper bound");
  EXPECT_EQ(set("columns=3"), "");
  EXPECT_EQ(set("row=2"), "");
  EXPECT_EQ(compile(),
            "unknown size 'row'; expected one of rows, columns (hint: did you mean 'rows'?)");
}

TEST_F(SizesInC, HaveANameAndANumber) {
  for (const char* value : {"", "rows", "rows=", "=4", "rows=4.0", "rows=four", "rows= 4",
                            "rows=99999999999999999999"}) {
    EXPECT_EQ(set(value), "size '" + std::string(value) +
                              "'; expected a size and a whole number, as in rows=40");
  }
}

}  // namespace
}  // namespace arenite
