/* Arenite for C, and for everything that can call C.
 *
 *   arenite_session* session;
 *   arenite_model* model;
 *   char* message = NULL;
 *   if (arenite_session_create(NULL, &session, &message) != ARENITE_OK) …   // message says why
 *   arenite_tensor weight = {"weight", data, bytes};
 *   arenite_model_create(session, script, &weight, 1, NULL, &model, &message);
 *   arenite_tensor image = {"image", pixels, ARENITE_UNKNOWN_BYTES};
 *   void* logits = …;
 *   arenite_model_evaluate(model, &image, 1, &logits, 1, &message);
 *   arenite_model_free(model);
 *   arenite_session_destroy(session);
 *
 * Every call that can fail returns a status. Where that is not ARENITE_OK and `message` is not
 * NULL, *message is a text that the caller frees with arenite_free; else it is NULL. Texts are
 * UTF-8 and end with a 0. A call that fails leaves its other results untouched.
 *
 * Calls may come from several threads: those on one model wait for each other, those on different
 * models do not. What is freed must not be in use. A session may be destroyed before its models; it
 * ends with the last of them. No C++ exception leaves a call.
 */
#ifndef ARENITE_ARENITE_H
#define ARENITE_ARENITE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ARENITE_API __attribute__((visibility("default")))
#else
#define ARENITE_API
#endif

/* "0.2.0". Not to be freed. */
ARENITE_API const char* arenite_version(void);

/* The operators that are formulas of each element, or of rows of them, as "gelu silu": names with a
 * blank between. Not to be freed. */
ARENITE_API const char* arenite_formulas(void);

typedef enum arenite_status {
  ARENITE_OK = 0,
  ARENITE_INVALID = 1, /* wrong input: the message says what was found and what was expected */
  ARENITE_FAILURE = 2  /* right input, but the machine refused: memory, workers */
} arenite_status;

typedef enum arenite_type {
  ARENITE_FLOAT32 = 0,
  ARENITE_FLOAT64 = 1,
  ARENITE_INT64 = 2,
  ARENITE_INT32 = 3,
  ARENITE_UINT8 = 4
} arenite_type;

typedef struct arenite_session arenite_session;
typedef struct arenite_model arenite_model;

/* Frees a text that a call returned. NULL is fine. */
ARENITE_API void arenite_free(char* text);

/* ---- sessions: the workers ------------------------------------------------------------------ */

typedef struct arenite_session_options {
  /* Where models run: "cpu", "cuda" (the first GPU), "cuda:1", "auto" (a GPU if there is one), or
   * several of them as in "cuda:0+cuda:1"; NULL: as the session that runs, else "cpu". */
  const char* device;
  int workers; /* 0: one a usable processor (2 beside GPUs alone), or those that run */
} arenite_session_options;

/* `options` may be NULL. All sessions of a process share its workers; asking for another number of
 * them, or another device, is an error, and so is a device that is not there. */
ARENITE_API arenite_status arenite_session_create(const arenite_session_options* options,
                                                  arenite_session** session, char** message);
/* NULL is fine. */
ARENITE_API void arenite_session_destroy(arenite_session* session);
ARENITE_API int arenite_session_workers(const arenite_session* session);

/* ---- models --------------------------------------------------------------------------------- */

#define ARENITE_UNKNOWN_BYTES ((int64_t)-1)

/* Dense data in row-major order, borrowed for the call it is given to. */
typedef struct arenite_tensor {
  const char* name;
  const void* data;
  int64_t bytes; /* checked against the shape; ARENITE_UNKNOWN_BYTES: taken on trust */
} arenite_tensor;

/* How models are compiled; may serve for several, which have what was set by then. One thread at a
 * time. */
typedef struct arenite_options arenite_options;

ARENITE_API arenite_status arenite_options_create(arenite_options** options, char** message);
/* Sets one by its name; what is refused changes nothing:
 *   device   one of the session's, as "cpu" or "cuda"; "" for all of them
 *   cudnn    "off": on GPUs, other kernels than cuDNN's; else "on"
 *   compute  what products of float32 do with what they multiply: "float32", nothing; "bfloat16",
 *            round it; "tfloat32", on GPUs let tensor cores round it to 10 bits. Sums, and all that
 *            is kept, stay float32
 *   shards   "1" to "64" of the batch, whose gradients are complete by themselves and are added in
 *            a fixed tree; "auto": chosen from the graph and the batch. Results depend on it
 *   lanes    "1" to "64" of a shard, 64 in all at most, which run side by side; "auto": chosen
 *            likewise, but one in each of several shards that are set
 *   at-once  "1" to "64" shards under way together: fewer need less memory, and results are the
 *            same; "auto": enough for all workers, on GPUs all
 *   seed     of random first values that have none of their own; "1" unless it is set
 *   size     "rows=40": of a size that the script leaves open, as in [rows<=64, 784], what it is in
 *            all of this model's runs; once for each of them
 *   sizes-kept  "1" to "64", else "4": of how many smaller sizes that runs say programs are kept,
 *            beside those of the largest; those used last stay */
ARENITE_API arenite_status arenite_options_set(arenite_options* options, const char* name,
                                               const char* value, char** message);
/* NULL is fine. */
ARENITE_API void arenite_options_free(arenite_options* options);

/* Compiles a script (docs/script.ebnf is the grammar). Constants are copied; parameters, states
 * and buffers that it declares may stand among them, and begin with that. `options` may be NULL. */
ARENITE_API arenite_status arenite_model_create(arenite_session* session, const char* script,
                                                const arenite_tensor* constants,
                                                size_t constant_count,
                                                const arenite_options* options,
                                                arenite_model** model, char** message);
/* Frees programs and memory, once the call under way has ended; what comes later is an error. */
ARENITE_API arenite_status arenite_model_close(arenite_model* model, char** message);
/* After the last call has returned. NULL is fine. */
ARENITE_API void arenite_model_free(arenite_model* model);

#define ARENITE_MAX_RANK 8

/* An input or output of a model. The name belongs to the model. */
typedef struct arenite_port {
  const char* name;
  arenite_type type;
  int rank;
  int64_t shape[ARENITE_MAX_RANK];
  int64_t bytes;
} arenite_port;

ARENITE_API size_t arenite_model_input_count(const arenite_model* model);
ARENITE_API size_t arenite_model_output_count(const arenite_model* model);
ARENITE_API arenite_status arenite_model_input(const arenite_model* model, size_t index,
                                               arenite_port* port, char** message);
ARENITE_API arenite_status arenite_model_output(const arenite_model* model, size_t index,
                                                arenite_port* port, char** message);

/* Runs the model once. Inputs are borrowed and may come in any order; outputs[i] is the caller's
 * room for output i. What a call finds wrong before it begins leaves the model's buffers as
 * they were. An op that finds an index out of range writes nothing, and nothing behind it changes a
 * buffer; what ops before it have replaced stays replaced. */
ARENITE_API arenite_status arenite_model_evaluate(arenite_model* model,
                                                  const arenite_tensor* inputs, size_t input_count,
                                                  void* const* outputs, size_t output_count,
                                                  char** message);

/* Bytes of memory: all that one evaluation touches, and what no plan could be below. */
typedef struct arenite_memory {
  int64_t bytes;       /* of all blocks: arenas, inputs, outputs, buffers */
  int64_t arena_bytes; /* of those, what values share as they come and go */
  int64_t lower_bound; /* of arena_bytes, proved */
  int64_t separate;    /* what the same values would take each with bytes of its own */
  int optimal;         /* 1: arena_bytes is proved to be least */
} arenite_memory;

ARENITE_API arenite_status arenite_model_memory(const arenite_model* model, arenite_memory* memory,
                                                char** message);
/* The whole plan as JSON; *json is the caller's, for arenite_free. */
ARENITE_API arenite_status arenite_model_plan(const arenite_model* model, char** json,
                                              char** message);
/* Its picture, a self-contained SVG document: time across, addresses up, one box a value; hovering
 * names it. *svg is the caller's, for arenite_free. */
ARENITE_API arenite_status arenite_model_picture(const arenite_model* model, char** svg,
                                                 char** message);
/* Where new versions of values are copies, and why, a line each, as "replace_slice #2: relu #3
 * reads the old version later"; "" where all are written in place. The caller's, for arenite_free.
 */
ARENITE_API arenite_status arenite_model_copies(const arenite_model* model, char** text,
                                                char** message);

/* ---- what models keep ----------------------------------------------------------------------- */

typedef enum arenite_state_kind {
  ARENITE_PARAMETER = 0,
  ARENITE_OPTIMIZER_STATE = 1,
  ARENITE_BUFFER = 2
} arenite_state_kind;

/* Parameters, states of the optimizer, among them "step", int64 [1], how many steps there were,
 * where its optimizer, schedule or means ask for it, and buffers, among them "learning_rate",
 * float32 [1], of a model that can be trained. All begin with what arenite_model_create was given
 * among the constants, else with what the script says, else with zeros. Of those that share a name,
 * with a constant too, the first has it, and others are called as "optimizer_state/step" and
 * "buffer/learning_rate". */
ARENITE_API size_t arenite_model_state_count(const arenite_model* model);
ARENITE_API arenite_status arenite_model_state(const arenite_model* model, size_t index,
                                               arenite_port* port, arenite_state_kind* kind,
                                               char** message);
/* Copies all bytes of one of them out or in; `bytes` as in arenite_tensor. */
ARENITE_API arenite_status arenite_model_get_state(const arenite_model* model, const char* name,
                                                   void* data, int64_t bytes, char** message);
ARENITE_API arenite_status arenite_model_set_state(arenite_model* model, const char* name,
                                                   const void* data, int64_t bytes, char** message);

/* All of them, by name, in one file, which is replaced as a whole. Loading a file that is damaged,
 * or made by another model, is an error, and leaves the model as it was. */
ARENITE_API arenite_status arenite_model_save(const arenite_model* model, const char* path,
                                              char** message);
ARENITE_API arenite_status arenite_model_load(arenite_model* model, const char* path,
                                              char** message);
/* The same with a text that the file keeps beside them, under a name: what the caller has to know
 * to go on; and that text, the caller's, for arenite_free: NULL where the file has none of this
 * name. */
ARENITE_API arenite_status arenite_model_save_with(const arenite_model* model, const char* path,
                                                   const char* name, const char* text,
                                                   char** message);
ARENITE_API arenite_status arenite_saved_text(const char* path, const char* name, char** text,
                                              char** message);

/* ---- training ------------------------------------------------------------------------------- */

/* arenite_model_evaluate with the means of parameters that `train(…, average(decay=0.999))` keeps,
 * in their place. */
ARENITE_API arenite_status arenite_model_evaluate_averaged(arenite_model* model,
                                                           const arenite_tensor* inputs,
                                                           size_t input_count, void* const* outputs,
                                                           size_t output_count, char** message);
/* 1 where the script has a `train` statement. */
ARENITE_API int arenite_model_is_trainable(const arenite_model* model);
/* What steps are scaled by, "learning_rate" among the states. It is at least 0, and finite. */
ARENITE_API arenite_status arenite_model_learning_rate(const arenite_model* model, float* rate,
                                                       char** message);
ARENITE_API arenite_status arenite_model_set_learning_rate(arenite_model* model, float rate,
                                                           char** message);
/* Parameters that were to be trained, but that the loss does not depend on, by name, a line each:
 * they stay as they are. The caller's, for arenite_free. */
ARENITE_API arenite_status arenite_model_untrained(const arenite_model* model, char** text,
                                                   char** message);
/* One step: outputs as arenite_model_evaluate gives them, before the parameters change. `outputs`
 * may be NULL, with a count of 0, where nobody looks. arenite_model_evaluate trains nothing. */
ARENITE_API arenite_status arenite_model_train_step(arenite_model* model,
                                                    const arenite_tensor* inputs,
                                                    size_t input_count, void* const* outputs,
                                                    size_t output_count, char** message);

/* ---- entries, and sizes that a script leaves open
 * ------------------------------------------------ */

/* What [rows<=64, 784] is in a run: {"rows", 40}. Where a call is not told, a size is at its bound,
 * as arenite_model_input and arenite_model_output have it. */
typedef struct arenite_size {
  const char* name;
  int64_t value;
} arenite_size;

/* `entry` says what: "evaluate", "averaged" or "train", as arenite_model_evaluate,
 * arenite_model_evaluate_averaged and arenite_model_train_step do, at these sizes; "accumulate", a
 * step without its update, whose gradients the next "train" takes as well, where the script says
 * `train(…, accumulate=4)`; or one of the script's own, `entry predict = $9;`, which takes the
 * inputs that its outputs need, and no others. Programs of all sizes share the memory of the
 * largest, which grows where one does not fit. One that is not there yet is built, which is no
 * step. */
ARENITE_API arenite_status arenite_model_run(arenite_model* model, const char* entry,
                                             const arenite_size* sizes, size_t size_count,
                                             const arenite_tensor* inputs, size_t input_count,
                                             void* const* outputs, size_t output_count,
                                             char** message);
/* Builds ahead what runs at these sizes. */
ARENITE_API arenite_status arenite_model_prepare(arenite_model* model, const arenite_size* sizes,
                                                 size_t size_count, char** message);
/* An output of an entry at these sizes, without a name. */
ARENITE_API arenite_status arenite_model_output_at(const arenite_model* model, const char* entry,
                                                   size_t index, const arenite_size* sizes,
                                                   size_t size_count, arenite_port* port,
                                                   char** message);
/* {"sizes": {"rows": 64}, "inputs": {"x": ["rows", ""]}, "entries": [{"name": "predict", "inputs":
 * ["x"], "outputs": ["output_0"]}, …], "programs": [{"entry": "train", "sizes": {"rows": 40},
 * "arena_bytes": …, "fit": "own plan", "milliseconds": …, "runs": 3}, …]}: bounds, what axes of
 * inputs they are, and what is built, the largest first. The caller's, for arenite_free. */
ARENITE_API arenite_status arenite_model_programs(const arenite_model* model, char** json,
                                                  char** message);

/* ---- builders: graphs call by call ---------------------------------------------------------- */

/* For those who would rather call functions than write a script:
 *
 *   arenite_value x, w, y;
 *   arenite_builder_add(builder, "InputTensor(x, float32, [64, 784])", NULL, 0, &x, 1, NULL, …);
 *   arenite_builder_add(builder, "ParameterTensor(w, float32, [784, 10])", NULL, 0, &w, 1, …);
 *   arenite_value given[] = {x, w};
 *   arenite_builder_add(builder, "dense($1, $2)", given, 2, &y, 1, NULL, &message);
 *   arenite_builder_script(builder, &y, 1, &script, &message);   // for arenite_model_create
 *
 * Any operator by its name, with its attributes, whose shapes and mistakes are there at once. One
 * thread at a time may use a builder. */
typedef struct arenite_builder arenite_builder;
typedef int64_t arenite_value; /* of a builder, from 1 on; 0: none */

ARENITE_API arenite_status arenite_builder_create(arenite_builder** builder, char** message);
/* NULL is fine. */
ARENITE_API void arenite_builder_free(arenite_builder* builder);

/* One statement more (docs/scripts.md): what stands right of its '='. $1 in it is operands[0], and
 * so on; an optional operand is left out by '_' or by an operand of 0. Writes its results, for
 * which there is `room`; result_count may be NULL. With `room` 0 it is a statement without results:
 * `train($1, optimizer=sgd, learning_rate=0.1)`, `entry predict = $1`, or one that changes what it
 * makes new versions of, as `assign($1, $2)`: their numbers stand for these from there on. What is
 * refused changes nothing. */
ARENITE_API arenite_status arenite_builder_add(arenite_builder* builder, const char* statement,
                                               const arenite_value* operands, size_t operand_count,
                                               arenite_value* results, size_t room,
                                               size_t* result_count, char** message);
/* Begins the first block of an `if` or `loop`, as in "loop($1, _, $2, max_trips=8)": what is added
 * from here on is inside of it. Writes the block's parameters, of a loop the number of the trip and
 * what it carries. */
ARENITE_API arenite_status arenite_builder_begin(arenite_builder* builder, const char* call,
                                                 const arenite_value* operands,
                                                 size_t operand_count, arenite_value* parameters,
                                                 size_t room, size_t* parameter_count,
                                                 char** message);
/* Ends the innermost block, which yields these values; 0 leaves one out. Behind the first block of
 * an `if` its second one begins; behind the last block this writes the op's results. */
ARENITE_API arenite_status arenite_builder_end(arenite_builder* builder,
                                               const arenite_value* yields, size_t yield_count,
                                               arenite_value* results, size_t room,
                                               size_t* result_count, char** message);
/* Takes back the last of these three that was not refused. */
ARENITE_API arenite_status arenite_builder_undo(arenite_builder* builder, char** message);
/* Type, shape and bytes of a value, open sizes at their bounds. The name, that of its operator
 * where nobody gave it one, is the builder's, until its next call. */
ARENITE_API arenite_status arenite_builder_value(const arenite_builder* builder,
                                                 arenite_value value, arenite_port* port,
                                                 char** message);
/* The script of all of it, with these outputs: for arenite_model_create and arenite_trainer_create.
 * What only the whole shows to be wrong is said here, as a value of one phase that is read in an
 * earlier one; arenite_builder_undo takes it back. The builder goes on. *script is the caller's,
 * for arenite_free. */
ARENITE_API arenite_status arenite_builder_script(arenite_builder* builder,
                                                  const arenite_value* outputs, size_t output_count,
                                                  char** script, char** message);

/* What an operator would make, by the shape rules that arenite_model_create follows: for those who
 * write scripts, and want to know at once what is wrong. `call` is the right side of a statement
 * (docs/scripts.md), as "conv2d($1, $2, stride=[2, 2])", without ';'; blocks of `if` and `loop`
 * follow it. Notes ("@lane(0)") say nothing here. $1 is operands[0], and so on: their bytes are not
 * looked at, their names stand in messages and may be NULL. Writes type, shape and bytes of each
 * result, without a name; `results` has room for `room` of them. */
ARENITE_API arenite_status arenite_infer(const char* call, const arenite_port* operands,
                                         size_t operand_count, arenite_port* results, size_t room,
                                         size_t* result_count, char** message);

#ifdef __cplusplus
}
#endif

#include <arenite/earlier_names.h>

#endif /* ARENITE_ARENITE_H */
