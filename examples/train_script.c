/* Trains a script from C: two layers learn exclusive or.
 *
 * The script says what is trained, and how; here are only numbers. First weights are given by name
 * when it is compiled; what is not given, as the biases, begins as zeros. */
#include <arenite/arenite.h>
#include <stdio.h>
#include <stdlib.h>

static const char script[] =
    "$1 = InputTensor(x, float32, [4, 2]);\n"
    "$2 = InputTensor(label, int32, [4]);\n"
    "$3 = ParameterTensor(hidden, float32, [2, 3]);\n"
    "$4 = ParameterTensor(hidden_bias, float32, [3]);\n"
    "$5 = ParameterTensor(out, float32, [3, 2]);\n"
    "$6 = ParameterTensor(out_bias, float32, [2]);\n"
    "$7 = dense($1, $3, $4);\n"
    "$8 = relu($7);\n"
    "$9 = dense($8, $5, $6);\n"
    "$10, $11, $12 = softmax_cross_entropy($9, $2, divisor=4);\n"
    "train($10, optimizer=sgd, learning_rate=0.5, momentum=0.9, parameters=[$3, $4, $5, $6]);\n"
    "result = $10, $9;\n";

static const float x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
static const int32_t label[4] = {0, 1, 1, 0};
static const float hidden[2][3] = {{0.6f, -0.7f, 0.4f}, {0.5f, 0.8f, -0.6f}};
static const float out[3][2] = {{0.3f, -0.4f}, {-0.6f, 0.5f}, {-0.5f, 0.6f}};

static char* message = NULL;

static void check(arenite_status status) {
  if (status == ARENITE_OK) return;
  fprintf(stderr, "%s\n", message);
  arenite_free(message);
  exit(1);
}

int main(void) {
  const arenite_tensor first[] = {{"hidden", hidden, sizeof hidden}, {"out", out, sizeof out}};
  const arenite_tensor inputs[] = {{"x", x, sizeof x}, {"label", label, sizeof label}};
  arenite_session* session;
  arenite_model* model;
  check(arenite_session_create(NULL, &session, &message));
  check(arenite_model_create(session, script, first, 2, NULL, &model, &message));

  arenite_memory memory;
  check(arenite_model_memory(model, &memory, &message));
  printf("a step takes %lld bytes, %lld of them shared as values come and go\n",
         (long long)memory.bytes, (long long)memory.arena_bytes);

  for (int step = 0; step < 200; ++step) /* nobody looks: the call returns at once */
    check(arenite_model_train_step(model, inputs, 2, NULL, 0, &message));

  float loss, logits[4][2];
  void* const places[] = {&loss, logits};
  check(arenite_model_evaluate(model, inputs, 2, places, 2, &message));
  printf("loss %.4f after 200 steps\n", loss);
  int wrong = 0;
  for (int i = 0; i < 4; ++i) {
    const int found = logits[i][1] > logits[i][0];
    printf("%g xor %g = %d\n", x[i][0], x[i][1], found);
    wrong += found != label[i];
  }
  arenite_model_free(model);
  arenite_session_destroy(session);
  return wrong;
}
