/* The C interface of the course github.com/gritukan/hamkaas, for its Python front end and others
 * that know it. New programs want arenite/arenite.h. Errors are the caller's, who frees them with
 * HamKaasFreeErrorMessage. Only pointers cross: shapes are the caller's contract. */
#ifndef ARENITE_HAMKAAS_H
#define ARENITE_HAMKAAS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAMKAAS_API __attribute__((visibility("default")))

typedef struct HamKaasInitializationResult {
  const void* handle;
  char* error;
} HamKaasInitializationResult;

typedef struct HamKaasCompilationResult {
  const void* model;
  char* error;
} HamKaasCompilationResult;

typedef struct HamKaasNamedTensor {
  const char* name;
  const char* data;
} HamKaasNamedTensor;

typedef struct HamKaasCompilationOptions {
  bool use_gpu;
  bool use_cudnn;
} HamKaasCompilationOptions;

HAMKAAS_API HamKaasInitializationResult HamKaasInitialize(void);
HAMKAAS_API void HamKaasFinalize(const void* handle);

/* Constants are borrowed for this call. */
HAMKAAS_API HamKaasCompilationResult HamKaasCompileModel(const void* handle,
                                                         HamKaasCompilationOptions options,
                                                         const char* script,
                                                         const HamKaasNamedTensor* constants,
                                                         int constant_count);
HAMKAAS_API void HamKaasFreeModel(const void* handle, const void* model);

/* NULL, or what is wrong. */
HAMKAAS_API char* HamKaasEvaluateModel(const void* handle, const void* model,
                                       const HamKaasNamedTensor* inputs, int input_count,
                                       char* output);

HAMKAAS_API void HamKaasFreeErrorMessage(char* message);

/* output[i] = 1 / input[i]; NULL, or an error where an element is 0. */
HAMKAAS_API char* HamKaasInverseElements(const float* input, float* output, int size);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_HAMKAAS_H */
