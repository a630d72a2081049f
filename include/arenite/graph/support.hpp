// Whether something can be had for an op, and if not, why.
#pragma once

#include <cstddef>
#include <string_view>

namespace arenite::graph {

/// Yes, or the first reason against it: a literal in words of the field ("a stride above 1"), so
/// that a no is never without one and allocates nothing.
class Support {
 public:
  constexpr Support() noexcept = default;  ///< yes
  template <std::size_t n>
  constexpr Support(const char (&why)[n]) noexcept : why_(why, n - 1) {
    static_assert(n > 4, "a reason has words");
  }

  constexpr explicit operator bool() const noexcept { return why_.empty(); }
  constexpr std::string_view why() const noexcept { return why_; }  ///< empty: yes

 private:
  std::string_view why_;
};

}  // namespace arenite::graph
