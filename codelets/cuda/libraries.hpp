// What the runtime needs to know of GPU libraries, and of launches that fail: no CUDA header in
// here.
#pragma once

#include <string>

namespace arenite::codelets::cuda {

/// A kernel's `run` has nobody to throw to: it notes what failed, and the step's results are
/// nothing. The first failure is kept until it is taken. Safe from any thread; allocates nothing.
/// `what` and `text`, what the library says of its status, last as long as the process.
void note_failure(const char* what, int status, const char* text = "") noexcept;

/// What failed since the last call, "what: text (status)"; empty when nothing did.
std::string take_failure();

/// Makes this thread's handles of all libraries for its current device, unless it has them: they
/// take long, and device memory, which a step must not. Throws Error. In builds with CUDA only.
void warm_up_libraries();

/// "cuBLASLt 13.0.2, cuDNN 9.13.0": other versions may add in other orders. In builds with CUDA
/// only.
std::string library_versions();

}  // namespace arenite::codelets::cuda
