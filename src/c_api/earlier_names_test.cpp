// Programs of version 0.1 still compile and run, with a warning for each name.
#include <arenite/arenite.h>

#include <gtest/gtest.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

TEST(EarlierNames, AreTheSameFunctions) {
  arenite_session* session = nullptr;
  arenite_model* model = nullptr;
  ASSERT_EQ(arenite_session_create(nullptr, &session, nullptr), ARENITE_OK);
  ASSERT_EQ(arenite_compile(session,
                            "$1 = InputTensor(x, float32, [2]);"
                            "$2 = ParameterTensor(w, float32, [2]); $3 = mul($1, $2); result = $3;",
                            nullptr, 0, &model, nullptr),
            ARENITE_OK);
  const float w[] = {2, 3}, x[] = {5, 7};
  float y[2] = {};
  ASSERT_EQ(arenite_state_count(model), 1U);
  ASSERT_EQ(arenite_set_state(model, "w", w, sizeof w, nullptr), ARENITE_OK);
  const arenite_tensor input{"x", x, sizeof x};
  void* out = y;
  ASSERT_EQ(arenite_evaluate(model, &input, 1, &out, 1, nullptr), ARENITE_OK);
  EXPECT_EQ(y[0], 10);
  EXPECT_EQ(y[1], 21);
  ASSERT_EQ(arenite_run(model, "evaluate", nullptr, 0, &input, 1, &out, 1, nullptr), ARENITE_OK);
  EXPECT_EQ(y[1], 21);
  arenite_model_free(model);
  arenite_session_destroy(session);
}

}  // namespace
