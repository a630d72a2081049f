#include "src/c_api/hamkaas.h"

#include <arenite/arenite.h>
#include <arenite/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/c_api/guard.hpp"

// The course's interface upon the project's own: a handle is a session, a model a model with one
// output.

namespace {

using namespace arenite;

/// The message of a call that failed, or null.
template <class Action>
char* message_of(Action action) noexcept {
  char* message = nullptr;
  c_api::guarded(action,
                 [&](const char* what, bool /*invalid*/) { message = c_api::copy_text(what); });
  return message;
}

std::vector<arenite_tensor> tensors(const HamKaasNamedTensor* named, int count) {
  if (count < 0 || (count > 0 && named == nullptr)) {
    fail({.found = std::to_string(count) + " tensors" + (named == nullptr ? " at null" : ""),
          .expected = "0 or more, and where they are"});
  }
  std::vector<arenite_tensor> result;
  for (int i = 0; i < count; ++i) {
    result.push_back({named[i].name, named[i].data, ARENITE_UNKNOWN_BYTES});
  }
  return result;
}

/// Passes on what a call of the C interface reports.
void check(arenite_status status, char* message) {
  if (status == ARENITE_OK) return;
  const std::string text = message == nullptr ? "no memory left" : message;
  arenite_free(message);
  fail({.found = text});
}

class Options {
 public:
  Options(std::initializer_list<std::pair<const char*, const char*>> settings) {
    char* message = nullptr;
    arenite_options* made = nullptr;
    check(arenite_options_create(&made, &message), message);
    options_.reset(made);
    for (const auto& [name, value] : settings)
      check(arenite_options_set(made, name, value, &message), message);
  }
  const arenite_options* get() const { return options_.get(); }

 private:
  struct Free {
    void operator()(arenite_options* options) const { arenite_options_free(options); }
  };
  std::unique_ptr<arenite_options, Free> options_;
};

arenite_session* session_of(const void* handle) {
  if (handle == nullptr) fail({.found = "null for the handle", .expected = "HamKaasInitialize's"});
  return static_cast<arenite_session*>(const_cast<void*>(handle));
}

}  // namespace

HamKaasInitializationResult HamKaasInitialize(void) {
  arenite_session* session = nullptr;
  char* error = message_of([&] {
    char* message = nullptr;
    // A model says whether it wants the GPU, and only when it is compiled.
    const arenite_session_options options{.device = "auto", .workers = 0};
    const arenite_status status = arenite_session_create(&options, &session, &message);
    check(status, message);
  });
  return {session, error};
}

void HamKaasFinalize(const void* handle) {
  arenite_session_destroy(static_cast<arenite_session*>(const_cast<void*>(handle)));
}

HamKaasCompilationResult HamKaasCompileModel(const void* handle, HamKaasCompilationOptions options,
                                             const char* script,
                                             const HamKaasNamedTensor* constants,
                                             int constant_count) {
  arenite_model* model = nullptr;
  char* error = message_of([&] {
    arenite_session* session = session_of(handle);
    if (options.use_cudnn && !options.use_gpu) {
      fail({.found = "use_cudnn without use_gpu", .expected = "cuDNN on a GPU, or neither"});
    }
    const std::vector<arenite_tensor> given = tensors(constants, constant_count);
    char* message = nullptr;
    const Options chosen({{"device", options.use_gpu ? "cuda" : "cpu"},
                          {"cudnn", options.use_cudnn ? "on" : "off"}});
    const arenite_status status = arenite_model_create(session, script, given.data(), given.size(),
                                                       chosen.get(), &model, &message);
    check(status, message);
    if (const std::size_t outputs = arenite_model_output_count(model); outputs != 1) {
      arenite_model_free(model);
      model = nullptr;
      fail({.found = std::to_string(outputs) + " results", .expected = "one"});
    }
  });
  return {model, error};
}

void HamKaasFreeModel(const void* /*handle*/, const void* model) {
  arenite_model_free(static_cast<arenite_model*>(const_cast<void*>(model)));
}

char* HamKaasEvaluateModel(const void* handle, const void* model, const HamKaasNamedTensor* inputs,
                           int input_count, char* output) {
  return message_of([&] {
    session_of(handle);
    const std::vector<arenite_tensor> given = tensors(inputs, input_count);
    void* out = output;
    char* message = nullptr;
    const arenite_status status =
        arenite_model_evaluate(static_cast<arenite_model*>(const_cast<void*>(model)), given.data(),
                               given.size(), &out, 1, &message);
    check(status, message);
  });
}

void HamKaasFreeErrorMessage(char* message) { std::free(message); }

char* HamKaasInverseElements(const float* input, float* output, int size) {
  return message_of([&] {
    if (size < 0 || (size > 0 && (input == nullptr || output == nullptr))) {
      fail({.found = std::to_string(size) + " elements, or null for where they are",
            .expected = "0 or more, and two pointers"});
    }
    const float* zero = std::find(input, input + size, 0.0f);
    if (zero != input + size) {
      fail({.found = "a division by zero at element " + std::to_string(zero - input),
            .expected = "elements other than 0"});
    }
    std::transform(input, input + size, output, [](float x) { return 1 / x; });
  });
}
