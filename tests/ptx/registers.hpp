// Names of a kernel's registers, and where they lie in the file of a warp.
#pragma once

#include "tests/ptx/program.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptx {

struct Place {
  Register at = 0;
  std::uint8_t bytes = 0;  ///< of a lane; 0: a predicate
};

class Registers {
 public:
  /// Constants, and registers that nobody writes, are noted in `entry`.
  explicit Registers(Entry& entry) : entry_(entry) {}

  void enter() { scopes_.emplace_back(); }
  void leave() { scopes_.pop_back(); }
  bool in_scope() const { return !scopes_.empty(); }

  /// name0 and on, so many; one without a number where `count` is 0.
  void declare(const std::string& name, std::uint32_t count, std::uint8_t bytes);
  Register allocate(std::uint8_t bytes);
  Place constant(std::uint64_t value, std::uint8_t bytes);

  /// One that was declared, in the innermost scope that has it, or %tid.x and the like.
  std::optional<Place> find(std::string_view name);

  /// Of all, for one warp.
  std::uint32_t bytes() const;

 private:
  struct Declared {
    Register first = 0;
    std::uint32_t count = 0;
    std::uint8_t bytes = 0;
  };
  std::optional<Place> find_special(std::string_view name);

  Entry& entry_;
  std::vector<std::map<std::string, Declared, std::less<>>> scopes_;
  std::map<std::pair<std::uint8_t, std::uint64_t>, Register> constants_;
  std::uint32_t end_ = 0;
};

}  // namespace ptx
