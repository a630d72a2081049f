// What an option's text must be: read strictly, from the first character to the last. The parser's
// own conversions saturate, wrap around and take octal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace arenite::cli {

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
CLI::Validator number_of_at_least_0();
CLI::Validator number_from_0_to_below_1();
CLI::Validator one_of(std::vector<std::string> names);
CLI::Validator not_empty();

}  // namespace arenite::cli
