/* Builds a network call by call from C, of layers that a loop adds; then trains it.
 *
 * Each call says at once what is wrong with it, and what it makes: here the width of a layer is
 * asked of what is before it. */
#include <arenite/arenite.h>
#include <stdio.h>
#include <stdlib.h>

static char* message = NULL;

static void check(arenite_status status) {
  if (status == ARENITE_OK) return;
  fprintf(stderr, "%s\n", message);
  arenite_free(message);
  exit(1);
}

/* The first result of a statement of up to three values. */
static arenite_value add(arenite_builder* builder, const char* statement, arenite_value a,
                         arenite_value b, arenite_value c) {
  const arenite_value operands[] = {a, b, c};
  arenite_value results[3];
  check(arenite_builder_add(builder, statement, operands, 3, results, 3, NULL, &message));
  return results[0];
}

static arenite_value layer(arenite_builder* builder, arenite_value x, int number, int width) {
  char weight[120], bias[80];
  arenite_port port;
  check(arenite_builder_value(builder, x, &port, &message));
  snprintf(weight, sizeof weight,
           "ParameterTensor(%d.weight, float32, [%d, %d], uniform(-0.5, 0.5))", number,
           (int)port.shape[1], width);
  snprintf(bias, sizeof bias, "ParameterTensor(%d.bias, float32, [%d])", number, width);
  const arenite_value w = add(builder, weight, 0, 0, 0), b = add(builder, bias, 0, 0, 0);
  return add(builder, "dense($1, $2, $3)", x, w, b);
}

int main(void) {
  arenite_builder* builder;
  check(arenite_builder_create(&builder, &message));
  const arenite_value x = add(builder, "InputTensor(x, float32, [8, 3])", 0, 0, 0),
                      odd = add(builder, "InputTensor(odd, int32, [8])", 0, 0, 0);
  arenite_value y = x;
  for (int i = 0; i < 2; ++i) y = add(builder, "gelu($1)", layer(builder, y, i, 12), 0, 0);
  const arenite_value logits = layer(builder, y, 2, 2);
  const arenite_value loss = add(builder, "softmax_cross_entropy($1, $2)", logits, odd, 0);
  check(arenite_builder_add(builder, "train($1, optimizer=adam, learning_rate=0.03)", &loss, 1,
                            NULL, 0, NULL, &message));

  const arenite_value wrong[] = {x, loss};
  if (arenite_builder_add(builder, "matmul($1, $2)", wrong, 2, &y, 1, NULL, &message) == ARENITE_OK)
    return 1;
  printf("refused: %s\n", message); /* and nothing is changed */
  arenite_free(message);

  char* script;
  const arenite_value outputs[] = {loss, logits};
  check(arenite_builder_script(builder, outputs, 2, &script, &message));
  arenite_builder_free(builder);
  fputs(script, stdout);

  arenite_session* session;
  arenite_model* model;
  check(arenite_session_create(NULL, &session, &message));
  check(arenite_model_create(session, script, NULL, 0, NULL, &model, &message));
  arenite_free(script);
  float bits[8][3], found, scores[8][2];
  int32_t parity[8];
  for (int i = 0; i < 8; ++i) {
    parity[i] = 0;
    for (int bit = 0; bit < 3; ++bit) {
      bits[i][bit] = (float)(i >> bit & 1);
      parity[i] ^= i >> bit & 1;
    }
  }
  const arenite_tensor inputs[] = {{"x", bits, sizeof bits}, {"odd", parity, sizeof parity}};
  for (int step = 0; step < 300; ++step)
    check(arenite_model_train_step(model, inputs, 2, NULL, 0, &message));
  void* const places[] = {&found, scores};
  check(arenite_model_evaluate(model, inputs, 2, places, 2, &message));
  int mistakes = 0;
  for (int i = 0; i < 8; ++i) mistakes += (scores[i][1] > scores[i][0]) != (parity[i] == 1);
  printf("the parity of three bits: loss %.4f, %d of 8 wrong\n", found, mistakes);
  arenite_model_free(model);
  arenite_session_destroy(session);
  return mistakes;
}
