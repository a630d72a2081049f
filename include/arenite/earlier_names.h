/* Functions of arenite.h by their names of version 0.1, for one version more: whoever calls one is
 * told its new name by the compiler. Included by arenite.h. */
#ifndef ARENITE_EARLIER_NAMES_H
#define ARENITE_EARLIER_NAMES_H

#include <arenite/arenite.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Without options. */
ARENITE_API __attribute__((deprecated("since 0.2: arenite_model_create"))) arenite_status
arenite_compile(arenite_session* session, const char* script, const arenite_tensor* constants,
                size_t constant_count, arenite_model** model, char** message);

#ifndef ARENITE_EARLIER_NAME
#define ARENITE_EARLIER_NAME(earlier, now) \
  ARENITE_API extern __typeof__(now) earlier __attribute__((deprecated("since 0.2: " #now)))
#endif

ARENITE_EARLIER_NAME(arenite_compile_with, arenite_model_create);
ARENITE_EARLIER_NAME(arenite_input_count, arenite_model_input_count);
ARENITE_EARLIER_NAME(arenite_output_count, arenite_model_output_count);
ARENITE_EARLIER_NAME(arenite_input, arenite_model_input);
ARENITE_EARLIER_NAME(arenite_output, arenite_model_output);
ARENITE_EARLIER_NAME(arenite_output_at, arenite_model_output_at);
ARENITE_EARLIER_NAME(arenite_evaluate, arenite_model_evaluate);
ARENITE_EARLIER_NAME(arenite_evaluate_averaged, arenite_model_evaluate_averaged);
ARENITE_EARLIER_NAME(arenite_run, arenite_model_run);
ARENITE_EARLIER_NAME(arenite_prepare, arenite_model_prepare);
ARENITE_EARLIER_NAME(arenite_is_trainable, arenite_model_is_trainable);
ARENITE_EARLIER_NAME(arenite_train_step, arenite_model_train_step);
ARENITE_EARLIER_NAME(arenite_learning_rate, arenite_model_learning_rate);
ARENITE_EARLIER_NAME(arenite_set_learning_rate, arenite_model_set_learning_rate);
ARENITE_EARLIER_NAME(arenite_state_count, arenite_model_state_count);
ARENITE_EARLIER_NAME(arenite_state, arenite_model_state);
ARENITE_EARLIER_NAME(arenite_get_state, arenite_model_get_state);
ARENITE_EARLIER_NAME(arenite_set_state, arenite_model_set_state);
ARENITE_EARLIER_NAME(arenite_save, arenite_model_save);
ARENITE_EARLIER_NAME(arenite_save_with, arenite_model_save_with);
ARENITE_EARLIER_NAME(arenite_load, arenite_model_load);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_EARLIER_NAMES_H */
