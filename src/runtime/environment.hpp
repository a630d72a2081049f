// What the process was started with: its environment, and its command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::runtime {

/// Empty where the variable is not set.
std::string environment(const char* name);

/// The process's own, as it was called.
std::vector<std::string> command_line();

/// Of a variable that says on, which is also what it says where it is not set, or off: "off to …".
/// Throws Error on anything else.
bool switched_on(const char* name, const char* off);

/// A number that StarPU's own reading of the environment takes, too.
std::optional<int> whole_number(std::string_view text);

/// Hides variables or sets them, and puts back what there was.
class LentVariables {
 public:
  LentVariables() = default;
  ~LentVariables();
  LentVariables(const LentVariables&) = delete;
  LentVariables& operator=(const LentVariables&) = delete;

  void hide(const char* name);
  void set(const char* name, const std::string& value);

 private:
  void save(const char* name);

  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

/// Makes the environment one that StarPU starts in: what the session decides itself is hidden, a
/// folder for StarPU's measurements found, and without GPUs the discovery of devices left out.
/// StarPU ends the process on what it cannot read or write; this throws Error instead.
void prepare_environment(LentVariables& lent, bool gpus = false);

}  // namespace arenite::runtime
