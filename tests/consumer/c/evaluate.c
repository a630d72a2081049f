/* What a program in C outside of the repository does: compiles a script, and evaluates it. */
#include <arenite/arenite.h>
#include <stdio.h>

static const char script[] =
    "$1 = InputTensor(x, float32, [2, 2]);\n"
    "$2 = ConstantTensor(weight, float32, [2, 2]);\n"
    "$3 = matmul($1, $2);\n"
    "$4 = relu($3);\n"
    "result = $4;\n";

int main(void) {
  const float x[2][2] = {{1, 2}, {3, 4}}, weight[2][2] = {{1, -1}, {1, 0}};
  const float expected[2][2] = {{3, 0}, {7, 0}};
  const arenite_tensor constant = {"weight", weight, sizeof weight}, input = {"x", x, sizeof x};
  float y[2][2];
  void* const places[] = {y};
  arenite_session* session = NULL;
  arenite_model* model = NULL;
  char* message = NULL;
  int wrong = 0;
  if (arenite_session_create(NULL, &session, &message) != ARENITE_OK ||
      arenite_model_create(session, script, &constant, 1, NULL, &model, &message) != ARENITE_OK ||
      arenite_model_evaluate(model, &input, 1, places, 1, &message) != ARENITE_OK) {
    fprintf(stderr, "%s\n", message);
    arenite_free(message);
    wrong = 1;
  } else {
    printf("version %s: %g %g, %g %g\n", arenite_version(), y[0][0], y[0][1], y[1][0], y[1][1]);
    for (int i = 0; i < 4; ++i) wrong += y[i / 2][i % 2] != expected[i / 2][i % 2];
  }
  arenite_model_free(model);
  arenite_session_destroy(session);
  return wrong;
}
