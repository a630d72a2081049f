#include <arenite/runtime/profile.hpp>

namespace arenite::runtime {

TimeParts& TimeParts::operator+=(const TimeParts& other) noexcept {
  kernels += other.kernels;
  staging += other.staging;
  idle += other.idle;
  runtime += other.runtime;
  return *this;
}

TimeParts Profile::all() const noexcept {
  TimeParts sum;
  for (const TimeParts& worker : workers) sum += worker;
  return sum;
}

double Profile::per_step(std::int64_t nanoseconds) const noexcept {
  return steps == 0 ? 0 : static_cast<double>(nanoseconds) * 1e-3 / static_cast<double>(steps);
}

}  // namespace arenite::runtime
