/* Training for C: whole runs over data in memory, as the command and C++ train.
 *
 *   arenite_trainer* trainer;
 *   arenite_trainer_options* options;
 *   arenite_trainer_options_create(&options, &message);
 *   arenite_trainer_options_set(options, "batch", "64", &message);
 *   arenite_trainer_create(session, script, options, &trainer, &message);
 *   const int64_t shape[] = {60000, 784}, labels[] = {60000};
 *   const arenite_column samples[] = {{"x", pixels, ARENITE_UINT8, 2, shape, 1.0 / 255},
 *                                     {"label", classes, ARENITE_UINT8, 1, labels, 1}};
 *   arenite_trainer_begin(trainer, samples, 2, NULL, 0, options, &message);
 *   arenite_event event;
 *   while (arenite_trainer_advance(trainer, 0, 0.5, &event, &message) == ARENITE_OK &&
 *          event.kind != ARENITE_ENDED) …
 *   arenite_trainer_free(trainer);
 *
 * A script says the network, its loss and its optimizer (docs/scripts.md, "Training a script"); one
 * seed ends in one set of bits, whoever trains it, on any number of workers. Statuses, messages and
 * threads are as arenite.h has them: calls on one trainer wait for each other.
 */
#ifndef ARENITE_TRAINER_H
#define ARENITE_TRAINER_H

#include <arenite/arenite.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arenite_trainer arenite_trainer;

/* Rows of one array, dense and in row-major order, for an input of the network: [M, …]. Numbers
 * become those of the input's type: bytes and integers real ones, times `scale`, or other integers
 * where these hold them. A scale of 0 is 1. */
typedef struct arenite_column {
  const char* input;
  const void* data;
  arenite_type type;
  int rank;
  const int64_t* shape;
  double scale;
} arenite_column;

/* How it is trained; may serve for several, which have what was set by then. One thread at a time.
 */
typedef struct arenite_trainer_options arenite_trainer_options;

ARENITE_API arenite_status arenite_trainer_options_create(arenite_trainer_options** options,
                                                          char** message);
/* Sets one by its name, which is the command's; what is refused changes nothing:
 *   batch       samples of a step, "1" to "1048576"; else "64", or as many as the script takes
 *   accumulate  "1" to "64" batches whose gradients a step adds up; "1" unless it is set
 *   seed        of random first values that have none of their own, and of the order of samples
 *   compute, shards, lanes, at-once  as arenite_options_set has them
 * and for arenite_trainer_begin
 *   epochs      "0" to "1000000"; "10" unless it is set
 *   shuffle     "on" or "off": visit samples in a new order each epoch; "on" unless it is set
 *   early-stop  end behind so many epochs in a row that validated no better; "0", never, unless set
 */
ARENITE_API arenite_status arenite_trainer_options_set(arenite_trainer_options* options,
                                                       const char* name, const char* value,
                                                       char** message);
/* NULL is fine. */
ARENITE_API void arenite_trainer_options_free(arenite_trainer_options* options);

/* `options` may be NULL. */
ARENITE_API arenite_status arenite_trainer_create(arenite_session* session, const char* script,
                                                  const arenite_trainer_options* options,
                                                  arenite_trainer** trainer, char** message);
/* The same of a network whose text depends on the samples of a step: a script for each number of
 * them, at most the batch and all that it adds up, by a function that is called with `context`
 * whenever a number is new. Of the trainer it may read states, and no more; what it returns has to
 * last until it is called again; NULL: it has no script, and the call that asked for it fails. All
 * scripts keep the same. */
typedef const char* (*arenite_script_for)(void* context, int64_t samples);
ARENITE_API arenite_status arenite_trainer_create_sized(arenite_session* session,
                                                        arenite_script_for script, void* context,
                                                        const arenite_trainer_options* options,
                                                        arenite_trainer** trainer, char** message);
/* The network of a run in a file, with all that it keeps: `train --save` or arenite_trainer_save
 * wrote it. Its batch, seed and what decided its bits are those of the run. It evaluates and
 * predicts; whoever goes on with the run calls arenite_trainer_resume, too. */
ARENITE_API arenite_status arenite_trainer_open(arenite_session* session, const char* path,
                                                arenite_trainer** trainer, char** message);
/* NULL is fine. */
ARENITE_API void arenite_trainer_free(arenite_trainer* trainer);

/* What samples are given, for a whole batch; and what predictions of one are. Names belong to the
 * trainer. */
ARENITE_API size_t arenite_trainer_input_count(const arenite_trainer* trainer);
ARENITE_API arenite_status arenite_trainer_input(const arenite_trainer* trainer, size_t index,
                                                 arenite_port* port, char** message);
ARENITE_API arenite_status arenite_trainer_prediction(arenite_trainer* trainer, arenite_port* port,
                                                      char** message);
/* "loss" and the script's own. Not to be freed; NULL where there are fewer. */
ARENITE_API size_t arenite_trainer_metric_count(const arenite_trainer* trainer);
ARENITE_API const char* arenite_trainer_metric_name(const arenite_trainer* trainer, size_t index);

/* Begins epochs over samples, and plans all that they need. A run that was resumed goes on, in the
 * middle of an epoch too. Samples and those that each epoch is validated on (count 0: none) are
 * borrowed until they are released, or the trainer is freed. `options` may be NULL. */
ARENITE_API arenite_status arenite_trainer_begin(arenite_trainer* trainer,
                                                 const arenite_column* samples, size_t count,
                                                 const arenite_column* validation,
                                                 size_t validation_count,
                                                 const arenite_trainer_options* options,
                                                 char** message);

typedef enum arenite_event_kind {
  ARENITE_ENDED = 0,    /* all epochs are over: nothing was done */
  ARENITE_PROGRESS = 1, /* in the middle of an epoch */
  ARENITE_EPOCH = 2     /* one has ended, and was validated */
} arenite_event_kind;

typedef struct arenite_event {
  arenite_event_kind kind;
  int epoch, epochs;        /* which, from 0, of how many */
  int64_t done, total;      /* samples of it */
  double seconds;           /* that these took, training alone */
  const double* metrics;    /* of the samples done, one for each metric; until the next call */
  const double* validation; /* likewise; NULL: it was not validated */
  int is_best;              /* its loss is below those of all validations before */
} arenite_event;

/* Makes steps: at most `steps` of them (0: to the epoch's end), and begins none behind `seconds`
 * (0: no limit). In between anything else may be asked of the trainer; what takes states from
 * elsewhere, as arenite_trainer_resume, ends the epochs. */
ARENITE_API arenite_status arenite_trainer_advance(arenite_trainer* trainer, int64_t steps,
                                                   double seconds, arenite_event* event,
                                                   char** message);

/* One step on a batch that comes from anywhere, and is copied: at most as many samples as a batch
 * has, and all that it adds up. Metrics are those of the batch before the step; NULL and a room of
 * 0: nobody asks. */
ARENITE_API arenite_status arenite_trainer_step(arenite_trainer* trainer,
                                                const arenite_column* batch, size_t count,
                                                double* metrics, size_t room, char** message);

/* What computes: means of parameters, where `train(…, average(…))` keeps some, else these. */
typedef enum arenite_weights { ARENITE_AVERAGED = 0, ARENITE_CURRENT = 1 } arenite_weights;

/* Metrics over samples, which are borrowed as by arenite_trainer_begin; `room` for all of them. */
ARENITE_API arenite_status arenite_trainer_evaluate(arenite_trainer* trainer,
                                                    const arenite_column* samples, size_t count,
                                                    arenite_weights weights, double* metrics,
                                                    size_t room, char** message);
/* Predictions of M samples, [M, …], into `bytes` bytes (as in arenite_tensor); samples are looked
 * at during the call alone, and only columns that predictions depend on. */
ARENITE_API arenite_status arenite_trainer_predict(arenite_trainer* trainer,
                                                   const arenite_column* samples, size_t count,
                                                   arenite_weights weights, void* into,
                                                   int64_t bytes, char** message);

/* Lets go of samples that were borrowed, these very ones: programs over them end, and so do epochs
 * over them that were begun. What is trained stays. Samples that were never given are none. */
ARENITE_API arenite_status arenite_trainer_release(arenite_trainer* trainer,
                                                   const arenite_column* samples, size_t count,
                                                   char** message);

/* Steps and epochs done, of a run that was resumed as well. */
ARENITE_API int64_t arenite_trainer_steps(const arenite_trainer* trainer);
ARENITE_API int arenite_trainer_epochs(const arenite_trainer* trainer);

/* As arenite_model_learning_rate and arenite_model_set_learning_rate. */
ARENITE_API arenite_status arenite_trainer_learning_rate(arenite_trainer* trainer, float* rate,
                                                         char** message);
ARENITE_API arenite_status arenite_trainer_set_learning_rate(arenite_trainer* trainer, float rate,
                                                             char** message);

/* As arenite_model_state_count and those behind it. States may be set before samples are seen, and
 * read behind them. arenite_trainer_resume and arenite_trainer_take_over may add some: ports from
 * before them are no longer valid. */
ARENITE_API size_t arenite_trainer_state_count(const arenite_trainer* trainer);
ARENITE_API arenite_status arenite_trainer_state(const arenite_trainer* trainer, size_t index,
                                                 arenite_port* port, arenite_state_kind* kind,
                                                 char** message);
ARENITE_API arenite_status arenite_trainer_get_state(arenite_trainer* trainer, const char* name,
                                                     void* data, int64_t bytes, char** message);
ARENITE_API arenite_status arenite_trainer_set_state(arenite_trainer* trainer, const char* name,
                                                     const void* data, int64_t bytes,
                                                     char** message);
/* SHA-256 over names, shapes and bytes of all parameters, in hex: the caller's, for arenite_free.
 */
ARENITE_API arenite_status arenite_trainer_weights_sha256(arenite_trainer* trainer, char** text,
                                                          char** message);

/* All that a run keeps, and how far it is, in one file, which is replaced as a whole; and with a
 * text of the caller's, as arenite_model_save_with, for arenite_saved_text. */
ARENITE_API arenite_status arenite_trainer_save(arenite_trainer* trainer, const char* path,
                                                char** message);
ARENITE_API arenite_status arenite_trainer_save_with(arenite_trainer* trainer, const char* path,
                                                     const char* name, const char* text,
                                                     char** message);
/* Goes on with such a run of this network, to the bit, once its epochs are begun again. *differs is
 * what may change bits, "" where nothing does: the caller's, for arenite_free; may be NULL. */
ARENITE_API arenite_status arenite_trainer_resume(arenite_trainer* trainer, const char* path,
                                                  char** differs, char** message);
/* Its parameters and buffers alone, for a run of its own. */
ARENITE_API arenite_status arenite_trainer_take_weights(arenite_trainer* trainer, const char* path,
                                                        char** message);
/* Goes on from what another trainer keeps by now, of all that this one keeps, by name, and from its
 * counts of steps and epochs: of a network whose parameters are frozen or freed on the way. */
ARENITE_API arenite_status arenite_trainer_take_over(arenite_trainer* trainer,
                                                     arenite_trainer* before, char** message);
/* Parameters that the loss does not depend on, a name a line: the caller's, for arenite_free. */
ARENITE_API arenite_status arenite_trainer_untrained(const arenite_trainer* trainer, char** text,
                                                     char** message);
/* The memory of a step on a whole batch, as arenite_model_memory, arenite_model_plan and
 * arenite_model_picture have it; and its table, as the command prints it. Texts are the caller's,
 * for arenite_free. */
ARENITE_API arenite_status arenite_trainer_memory(const arenite_trainer* trainer,
                                                  arenite_memory* memory, char** message);
ARENITE_API arenite_status arenite_trainer_plan(const arenite_trainer* trainer, char** json,
                                                char** message);
ARENITE_API arenite_status arenite_trainer_picture(const arenite_trainer* trainer, char** svg,
                                                   char** message);
ARENITE_API arenite_status arenite_trainer_table(const arenite_trainer* trainer, char** text,
                                                 char** message);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_TRAINER_H */
