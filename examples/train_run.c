/* A whole run from C: a network that a script says learns which points lie in a ring, is saved, and
 * asked by whoever has the file. */
#include <arenite/trainer.h>
#include <stdio.h>
#include <stdlib.h>

enum { samples = 2000, tests = 500 };

static const char script[] =
    "$1 = InputTensor(point, float32, [N<=50, 2]);\n"
    "$2 = InputTensor(ring, int32, [N]);\n"
    "$3 = ParameterTensor(hidden, float32, [2, 24], uniform(-0.7, 0.7));\n"
    "$4 = ParameterTensor(hidden_bias, float32, [24], uniform(-0.7, 0.7));\n"
    "$5 = ParameterTensor(out, float32, [24, 2], uniform(-0.2, 0.2));\n"
    "$6 = ParameterTensor(out_bias, float32, [2]);\n"
    "$7 = dense_relu($1, $3, $4);\n"
    "$8 = dense($7, $5, $6);\n"
    "$9, $10, $11 = softmax_cross_entropy($8, $2, divisor=N);\n"
    "$12 = slice($10, 1, 2);\n"
    "train($9, optimizer=adam, learning_rate=0.01);\n"
    "entry predict = $8;\n"
    "entry accuracy = $12;\n"
    "result = _;\n";

static char* message = NULL;

static void check(arenite_status status) {
  if (status == ARENITE_OK) return;
  fprintf(stderr, "%s\n", message);
  arenite_free(message);
  exit(1);
}

static double drawn(void) { return 2.0 * rand() / RAND_MAX - 1; }

int main(int argc, char** argv) {
  const char* const file = argc > 1 ? argv[1] : "ring.st";
  static double points[samples][2];
  static uint8_t in_ring[samples];
  for (int i = 0; i < samples; ++i) {
    const double x = points[i][0] = drawn(), y = points[i][1] = drawn(), r = x * x + y * y;
    in_ring[i] = r > 0.2 && r < 0.7;
  }
  /* The last of them are kept for tests. */
  const int64_t shape[] = {samples - tests, 2}, test_shape[] = {tests, 2};
  const arenite_column train[] = {{"point", points, ARENITE_FLOAT64, 2, shape, 1},
                                  {"ring", in_ring, ARENITE_UINT8, 1, shape, 1}};
  const arenite_column test[] = {
      {"point", points[samples - tests], ARENITE_FLOAT64, 2, test_shape, 1},
      {"ring", in_ring + samples - tests, ARENITE_UINT8, 1, test_shape, 1}};

  arenite_session* session;
  arenite_trainer_options* options;
  arenite_trainer* trainer;
  check(arenite_session_create(NULL, &session, &message));
  check(arenite_trainer_options_create(&options, &message));
  check(arenite_trainer_options_set(options, "batch", "50", &message));
  check(arenite_trainer_options_set(options, "epochs", "40", &message));
  check(arenite_trainer_create(session, script, options, &trainer, &message));
  check(arenite_trainer_begin(trainer, train, 2, test, 2, options, &message));

  arenite_event event;
  for (;;) {
    check(arenite_trainer_advance(trainer, 0, 0, &event, &message));
    if (event.kind == ARENITE_ENDED) break;
    if (event.kind == ARENITE_EPOCH && event.epoch % 10 == 9) {
      printf("epoch %d/%d  loss %.4f  right %.1f %% of those that it had not seen\n",
             event.epoch + 1, event.epochs, event.metrics[0], 100 * event.validation[1]);
    }
  }
  check(arenite_trainer_save(trainer, file, &message));
  arenite_trainer_free(trainer);

  check(arenite_trainer_open(session, file, &trainer, &message));
  const double ring[2][2] = {{0.6, 0}, {0, 0}};
  const int64_t two[] = {2, 2};
  const arenite_column asked = {"point", ring, ARENITE_FLOAT64, 2, two, 1};
  float scores[2][2];
  check(arenite_trainer_predict(trainer, &asked, 1, ARENITE_CURRENT, scores, sizeof scores,
                                &message));
  for (int i = 0; i < 2; ++i) {
    printf("(%g, %g) is %s the ring\n", ring[i][0], ring[i][1],
           scores[i][1] > scores[i][0] ? "in" : "not in");
  }
  arenite_trainer_free(trainer);
  arenite_trainer_options_free(options);
  arenite_session_destroy(session);
  return 0;
}
