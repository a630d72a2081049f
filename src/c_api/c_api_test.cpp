#include <arenite/arenite.h>
#include <arenite/plan/step_json.hpp>
#include <arenite/runtime/devices.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace arenite {
namespace {

using Floats = std::vector<float>;

const char* const script = R"(
  $1 = InputTensor(x, float32, [2, 3]);
  $2 = ConstantTensor(weight, float32, [3, 2]);
  $3 = dense($1, $2);
  $4 = sum($3);
  $5 = relu($4);
  result = $5;)";

arenite_tensor tensor(const char* name, const Floats& values) {
  return {name, values.data(), static_cast<std::int64_t>(values.size() * sizeof(float))};
}

/// Runs call(&message); expects the status, and returns the message.
template <class Call>
std::string message_of(arenite_status expected, Call call) {
  char* message = nullptr;
  EXPECT_EQ(call(&message), expected);
  if (message == nullptr) return "";
  std::string text = message;
  arenite_free(message);
  return text;
}

struct CApi : ::testing::Test {
  arenite_session* session = nullptr;
  arenite_model* model = nullptr;
  Floats weight{1, -1, 2, -2, 3, -3};
  Floats x{1, 1, 1, -1, 0, 0};
  Floats y{0, 0, 0, 0};

  CApi() {
    const arenite_session_options options{.device = "cpu", .workers = 1};
    EXPECT_EQ(arenite_session_create(&options, &session, nullptr), ARENITE_OK);
  }
  ~CApi() override {
    arenite_model_free(model);
    arenite_session_destroy(session);
  }
  CApi(const CApi&) = delete;
  CApi& operator=(const CApi&) = delete;

  void compile() {
    const arenite_tensor constant = tensor("weight", weight);
    EXPECT_EQ(message_of(ARENITE_OK,
                         [&](char** message) {
                           return arenite_model_create(session, script, &constant, 1, nullptr,
                                                       &model, message);
                         }),
              "");
  }
  std::string evaluate(arenite_status expected, const std::vector<arenite_tensor>& inputs) {
    void* out = y.data();
    return message_of(expected, [&](char** message) {
      return arenite_model_evaluate(model, inputs.data(), inputs.size(), &out, 1, message);
    });
  }
};

TEST_F(CApi, CompilesAndEvaluates) {
  EXPECT_EQ(std::string(arenite_version()), ARENITE_VERSION);
  EXPECT_NE((" " + std::string(arenite_formulas()) + " ").find(" gelu "), std::string::npos);
  EXPECT_EQ(arenite_session_workers(session), 1);
  compile();
  EXPECT_EQ(evaluate(ARENITE_OK, {tensor("x", x)}), "");
  EXPECT_EQ(y, (Floats{6, 0, 0, 1}));

  ASSERT_EQ(arenite_model_input_count(model), 1U);
  ASSERT_EQ(arenite_model_output_count(model), 1U);
  arenite_port port;
  ASSERT_EQ(arenite_model_input(model, 0, &port, nullptr), ARENITE_OK);
  EXPECT_EQ(std::string(port.name), "x");
  EXPECT_EQ(port.type, ARENITE_FLOAT32);
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.shape[1], 3);
  EXPECT_EQ(port.bytes, 24);
  ASSERT_EQ(arenite_model_output(model, 0, &port, nullptr), ARENITE_OK);
  EXPECT_EQ(std::string(port.name), "output_0");
}

TEST_F(CApi, TellsOfItsMemory) {
  compile();
  arenite_memory memory;
  ASSERT_EQ(arenite_model_memory(model, &memory, nullptr), ARENITE_OK);
  EXPECT_GE(memory.bytes, memory.arena_bytes + 2 * 24);
  EXPECT_GE(memory.arena_bytes, memory.lower_bound);
  EXPECT_GE(memory.separate, memory.lower_bound);
  char* json = nullptr;
  ASSERT_EQ(arenite_model_plan(model, &json, nullptr), ARENITE_OK);
  EXPECT_EQ(plan::step_plan_from_json(json).transient_bytes(), memory.arena_bytes);
  arenite_free(json);
}

TEST_F(CApi, DrawsItsPlan) {
  ASSERT_EQ(arenite_model_create(session,
                                 "$1 = InputTensor(x, float32, [2, 3]); $2 = relu($1);"
                                 "$3 = permute($2, [1, 0]); result = $3;",
                                 nullptr, 0, nullptr, &model, nullptr),
            ARENITE_OK);
  char* svg = nullptr;
  ASSERT_EQ(arenite_model_picture(model, &svg, nullptr), ARENITE_OK);
  const std::string picture = svg;
  arenite_free(svg);
  EXPECT_EQ(picture.rfind("<svg", 0), 0U);
  EXPECT_NE(picture.find("relu"), std::string::npos) << picture;
  // Nothing to place: an empty picture, no error.
  arenite_model* empty = nullptr;
  ASSERT_EQ(arenite_model_create(session, "$1 = InputTensor(x, float32, [1]); result = $1;",
                                 nullptr, 0, nullptr, &empty, nullptr),
            ARENITE_OK);
  EXPECT_EQ(arenite_model_picture(empty, &svg, nullptr), ARENITE_OK);
  arenite_free(svg);
  arenite_model_free(empty);
  EXPECT_EQ(
      message_of(ARENITE_INVALID,
                 [&](char** message) { return arenite_model_picture(model, nullptr, message); }),
      "null for the picture's place; expected a pointer");
}

TEST_F(CApi, TellsWhereItCopies) {
  const auto copies = [&](const char* reader) {
    const std::string text = std::string(R"(
      $1 = BufferTensor(state, float32, [4]);
      $2 = InputTensor(x, float32, [1]);
      $3 = InputTensor(begin, int64, [1]);
      $4 = replace_slice($1, $2, $3);
      $5 = relu()") + reader +
                             "); result = $5;";
    arenite_model_free(model);
    model = nullptr;
    EXPECT_EQ(arenite_model_create(session, text.c_str(), nullptr, 0, nullptr, &model, nullptr),
              ARENITE_OK);
    char* said = nullptr;
    EXPECT_EQ(arenite_model_copies(model, &said, nullptr), ARENITE_OK);
    const std::string lines = said;
    arenite_free(said);
    return lines;
  };
  EXPECT_EQ(copies("$4"), "");
  EXPECT_EQ(copies("$1"), "replace_slice #0: relu #1 reads the old version later\n");
  EXPECT_EQ(
      message_of(ARENITE_INVALID,
                 [&](char** message) { return arenite_model_copies(model, nullptr, message); }),
      "null for the text's place; expected a pointer");
}

TEST_F(CApi, AModelOutlivesItsSession) {
  compile();
  arenite_session_destroy(session);
  session = nullptr;
  EXPECT_EQ(evaluate(ARENITE_OK, {tensor("x", x)}), "");
  EXPECT_EQ(y, (Floats{6, 0, 0, 1}));
}

TEST_F(CApi, SaysWhatIsWrong) {
  arenite_session* other = nullptr;
  const arenite_session_options cuda{.device = "cuda", .workers = 0};
  EXPECT_EQ(
      message_of(ARENITE_INVALID,
                 [&](char** message) { return arenite_session_create(&cuda, &other, message); }),
      runtime::cuda_support().devices.empty()
          ? "device 'cuda', but " + runtime::cuda_support().reason + "; expected one of cpu" +
                (runtime::cuda_support().built ? ""
                                               : " (hint: build with CUDA, in Arenite's source: "
                                                 "scripts/build-starpu, then scripts/build cuda)")
          : "a second session on device 'cuda'; expected 'cpu', as in the session that runs "
            "(StarPU "
            "is one for the process)");
  EXPECT_EQ(other, nullptr);
  const auto compiled = [&](const char* text, std::size_t constants) {
    return message_of(ARENITE_INVALID, [&](char** message) {
      return arenite_model_create(session, text, nullptr, constants, nullptr, &model, message);
    });
  };
  EXPECT_EQ(compiled("$1 = relu($2);", 0),
            "<script>:1:11: unknown reference '$2'; expected a value defined above");
  EXPECT_EQ(compiled(nullptr, 0), "null for the script; expected a pointer");
  EXPECT_EQ(compiled(script, 1), "null for the tensors; expected a pointer");
  EXPECT_EQ(compiled(script, 0), "no constant 'weight'; expected all of weight");
  EXPECT_EQ(model, nullptr);

  compile();
  EXPECT_EQ(evaluate(ARENITE_INVALID, {}), "no input 'x'; expected all of x");
  EXPECT_EQ(evaluate(ARENITE_INVALID, {{nullptr, x.data(), 24}}),
            "null for a tensor's name; expected a pointer");
  EXPECT_EQ(evaluate(ARENITE_INVALID, {tensor("x", y)}),
            "16 bytes of input 'x'; expected 24, as it is float32 [2, 3]");
  EXPECT_EQ(evaluate(ARENITE_OK, {{"x", x.data(), ARENITE_UNKNOWN_BYTES}}), "");
  arenite_port port;
  EXPECT_EQ(
      message_of(ARENITE_INVALID,
                 [&](char** message) { return arenite_model_output(model, 1, &port, message); }),
      "output 1; expected one of 1");
  EXPECT_EQ(message_of(ARENITE_INVALID,
                       [&](char** message) {
                         return arenite_model_evaluate(nullptr, nullptr, 0, nullptr, 0, message);
                       }),
            "null for the model; expected a pointer");
  // Nothing to free, nothing to count.
  arenite_free(nullptr);
  arenite_model_free(nullptr);
  arenite_session_destroy(nullptr);
  EXPECT_EQ(arenite_model_input_count(nullptr), 0U);
}

struct TrainedCApi : CApi {
  const char* const trained = R"(
    $1 = InputTensor(x, float32, [2, 3]);
    $2 = ParameterTensor(weight, float32, [3, 1]);
    $3 = matmul($1, $2);
    $4 = mul($3, $3);
    $5 = sum_to($4, [1, 1]);
    train($5, optimizer=sgd, learning_rate=0.125, parameters=[$2]);
    result = $5;)";
  Floats first{1, 0, 2};
  float loss = 0;

  void train() {
    const arenite_tensor constant = tensor("weight", first);
    ASSERT_EQ(message_of(ARENITE_OK,
                         [&](char** message) {
                           return arenite_model_create(session, trained, &constant, 1, nullptr,
                                                       &model, message);
                         }),
              "");
    ASSERT_EQ(arenite_model_is_trainable(model), 1);
  }
  std::string step() {
    const arenite_tensor input = tensor("x", x);
    void* out = &loss;
    return message_of(ARENITE_OK, [&](char** message) {
      return arenite_model_train_step(model, &input, 1, &out, 1, message);
    });
  }
  Floats kept(const char* name, std::size_t size) {
    Floats values(size);
    const auto bytes = static_cast<std::int64_t>(size * sizeof(float));
    EXPECT_EQ(arenite_model_get_state(model, name, values.data(), bytes, nullptr), ARENITE_OK);
    return values;
  }
};

TEST_F(TrainedCApi, StepsAndKeepsParameters) {
  train();
  // x = (1 1 1; -1 0 0): y = (3; -1), loss = 10, slope = 2 x^T y = (8 6 6).
  EXPECT_EQ(step(), "");
  EXPECT_EQ(loss, 10);
  EXPECT_EQ(kept("weight", 3), (Floats{0, -0.75, 1.25}));
  const float slower = 0;
  EXPECT_EQ(arenite_model_set_state(model, "learning_rate", &slower, sizeof slower, nullptr),
            ARENITE_OK);
  EXPECT_EQ(step(), "");
  EXPECT_EQ(loss, 0.25);
  EXPECT_EQ(kept("weight", 3), (Floats{0, -0.75, 1.25}));
  // Nobody looks, and an evaluation trains nothing.
  const arenite_tensor input = tensor("x", x);
  EXPECT_EQ(arenite_model_train_step(model, &input, 1, nullptr, 0, nullptr), ARENITE_OK);
  void* out = &loss;
  EXPECT_EQ(arenite_model_evaluate(model, &input, 1, &out, 1, nullptr), ARENITE_OK);
  EXPECT_EQ(loss, 0.25);

  ASSERT_EQ(arenite_model_state_count(model), 2U);
  arenite_port port;
  arenite_state_kind kind = ARENITE_BUFFER;
  ASSERT_EQ(arenite_model_state(model, 0, &port, &kind, nullptr), ARENITE_OK);
  EXPECT_EQ(std::string(port.name), "weight");
  EXPECT_EQ(kind, ARENITE_PARAMETER);
  ASSERT_EQ(arenite_model_state(model, 1, &port, &kind, nullptr), ARENITE_OK);
  EXPECT_EQ(std::string(port.name), "learning_rate");
  EXPECT_EQ(kind, ARENITE_BUFFER);
  float rate = 0;
  EXPECT_EQ(arenite_model_set_learning_rate(model, 0.125F, nullptr), ARENITE_OK);
  EXPECT_EQ(arenite_model_learning_rate(model, &rate, nullptr), ARENITE_OK);
  EXPECT_EQ(rate, 0.125F);
  EXPECT_EQ(arenite_model_set_learning_rate(model, -1, nullptr), ARENITE_INVALID);
  char* untrained = nullptr;
  EXPECT_EQ(arenite_model_untrained(model, &untrained, nullptr), ARENITE_OK);
  EXPECT_STREQ(untrained, "");
  arenite_free(untrained);
}

TEST_F(TrainedCApi, SavesAndLoads) {
  train();
  EXPECT_EQ(step(), "");
  const std::string path = ::testing::TempDir() + "c_api_test.safetensors";
  EXPECT_EQ(arenite_model_save(model, path.c_str(), nullptr), ARENITE_OK);
  const Floats saved = kept("weight", 3);
  EXPECT_EQ(step(), "");
  EXPECT_NE(kept("weight", 3), saved);
  EXPECT_EQ(arenite_model_load(model, path.c_str(), nullptr), ARENITE_OK);
  EXPECT_EQ(kept("weight", 3), saved);
  char* text = nullptr;
  EXPECT_EQ(arenite_saved_text(path.c_str(), "place", &text, nullptr), ARENITE_OK);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(arenite_model_save_with(model, path.c_str(), "place", "epoch 3", nullptr), ARENITE_OK);
  EXPECT_EQ(arenite_saved_text(path.c_str(), "place", &text, nullptr), ARENITE_OK);
  EXPECT_STREQ(text, "epoch 3");
  arenite_free(text);
  EXPECT_EQ(arenite_model_load(model, path.c_str(), nullptr), ARENITE_OK);
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_EQ(
      message_of(ARENITE_INVALID,
                 [&](char** message) { return arenite_model_load(model, path.c_str(), message); }),
      path + ": cannot open it: No such file or directory; expected a readable file");
}

TEST_F(TrainedCApi, SaysWhatIsWrongWithStates) {
  train();
  float value = 0;
  const auto get = [&](const char* name, void* data, std::int64_t bytes) {
    return message_of(ARENITE_INVALID, [&](char** message) {
      return arenite_model_get_state(model, name, data, bytes, message);
    });
  };
  EXPECT_EQ(get("weight", &value, 4), "4 bytes of state 'weight'; expected 12");
  EXPECT_EQ(get("weight", nullptr, 12), "null for the bytes of state 'weight'; expected 12 bytes");
  EXPECT_EQ(get(nullptr, &value, 4), "null for the name; expected a pointer");
  EXPECT_NE(get("weights", &value, 4), "");
  arenite_port port;
  arenite_state_kind kind = ARENITE_BUFFER;
  EXPECT_EQ(message_of(ARENITE_INVALID,
                       [&](char** message) {
                         return arenite_model_state(model, 2, &port, &kind, message);
                       }),
            "state 2; expected one of 2");
  arenite_model_free(model);
  compile();
  const arenite_tensor input = tensor("x", x);
  EXPECT_EQ(arenite_model_is_trainable(model), 0);
  EXPECT_EQ(message_of(ARENITE_INVALID,
                       [&](char** message) {
                         return arenite_model_train_step(model, &input, 1, nullptr, 0, message);
                       }),
            "a model whose script has no training; expected one with a train statement");
}

TEST_F(CApi, ThreadsMayShareAModel) {
  compile();
  const auto run = [&](float factor) {
    for (int i = 0; i < 100; ++i) {
      const Floats mine{factor, 0, 0, 0, factor, 0};
      const arenite_tensor input = tensor("x", mine);
      Floats result(4);
      void* out = result.data();
      ASSERT_EQ(arenite_model_evaluate(model, &input, 1, &out, 1, nullptr), ARENITE_OK);
      ASSERT_EQ(result, (Floats{factor, 0, 2 * factor, 0}));
    }
  };
  std::thread other(run, 2.0f);
  run(3.0f);
  other.join();
}

TEST_F(CApi, RoundsWhatIsMultipliedWhereThatIsAskedFor) {
  const arenite_tensor constant = tensor("weight", weight);
  x[0] = 1 + 1.0f / 512;  // a bit more than bfloat16 has
  arenite_options* options = nullptr;
  ASSERT_EQ(arenite_options_create(&options, nullptr), ARENITE_OK);
  const auto result = [&](const char* compute, arenite_status expected) {
    EXPECT_EQ(arenite_options_set(options, "compute", compute, nullptr), ARENITE_OK);
    const std::string message = message_of(expected, [&](char** place) {
      return arenite_model_create(session, script, &constant, 1, options, &model, place);
    });
    if (expected != ARENITE_OK) return message;
    const arenite_tensor input = tensor("x", x);
    void* const out = y.data();
    EXPECT_EQ(arenite_model_evaluate(model, &input, 1, &out, 1, nullptr), ARENITE_OK);
    arenite_model_free(std::exchange(model, nullptr));
    return std::to_string(y[0]);
  };
  const std::string exact = result("float32", ARENITE_OK);
  EXPECT_NE(result("bfloat16", ARENITE_OK), exact);
  EXPECT_NE(result("tfloat32", ARENITE_INVALID).find("in tfloat32 on the CPU"), std::string::npos);
  arenite_options_free(options);
}

TEST_F(CApi, CutsABatchInShards) {
  const arenite_tensor constant = tensor("weight", weight), input = tensor("x", x);
  compile();
  evaluate(ARENITE_OK, {input});
  const Floats whole = y;
  std::int64_t last = 0;
  for (const char* at_once : {"1", "2"}) {
    arenite_options* options = nullptr;
    ASSERT_EQ(arenite_options_create(&options, nullptr), ARENITE_OK);
    ASSERT_EQ(arenite_options_set(options, "shards", "2", nullptr), ARENITE_OK);
    ASSERT_EQ(arenite_options_set(options, "at-once", at_once, nullptr), ARENITE_OK);
    arenite_model_free(std::exchange(model, nullptr));
    ASSERT_EQ(arenite_model_create(session, script, &constant, 1, options, &model, nullptr),
              ARENITE_OK);
    arenite_options_free(options);
    evaluate(ARENITE_OK, {input});
    EXPECT_EQ(y, whole);
    arenite_memory memory;
    ASSERT_EQ(arenite_model_memory(model, &memory, nullptr), ARENITE_OK);
    EXPECT_GE(memory.arena_bytes, last);
    last = memory.arena_bytes;
  }
}

}  // namespace
}  // namespace arenite
