// How `--help` looks.
#pragma once

#include "src/cli/command.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace arenite::cli {

/// No line is longer, unless a single word is.
inline constexpr std::size_t help_width = 100;

/// What the command is about, its options under their headings, examples, exit statuses, and where
/// to read on.
std::string help_of(const Command& command);

/// The subcommands and what each does, a line each.
std::string list_of_commands(const Command& app);

/// Columns that a UTF-8 text takes, for scripts whose letters are one column wide.
std::size_t columns_of(std::string_view text);

/// `text` from the column `indent` on, its lines broken at blanks. A line of it that follows a line
/// break is an item of a list: what does not fit hangs two columns deeper. `first` stands in front
/// of the first line, or above it where there is no room.
std::string wrapped(std::string_view first, std::string_view text, std::size_t indent);

}  // namespace arenite::cli
