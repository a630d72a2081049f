#pragma once

#include <string>
#include <string_view>

namespace arenite {

/// As a shell takes it for one word: quoted where it has to be.
std::string shell_word(std::string_view text);

/// Quoted in any case.
std::string quoted_for_shell(std::string_view text);

}  // namespace arenite
