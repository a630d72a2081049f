// What the INPUT of `arenite plan` stands for.
#pragma once

#include <arenite/nn/nn.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace arenite::cli {

/// Scripts above this many bytes are refused; one of a network's training step has some 100,000.
inline constexpr std::int64_t max_script_bytes = std::int64_t{16} << 20;
/// And above this many ops: the order of tasks takes time with the square of their number. A
/// network's training step has some hundreds.
inline constexpr std::int64_t max_script_ops = 20000;

/// A named model's step, as `arenite train` would run it.
struct ModelRequest {
  const nn::NamedModel* model = nullptr;
  std::int64_t batch = 64;
  bool training = true;
};

/// True for what begins with "model:".
bool names_model(std::string_view input) noexcept;

/// Reads "model:NAME", "model:NAME?batch=32&mode=inference". Throws Error on what it does not know;
/// builds nothing.
ModelRequest parse_model(const std::string& input);

/// True when a file's text is a graph script rather than a table: where its name ends with
/// ".arenite", or not with ".csv", and what it begins with, blanks aside, is `$`, `#`, `formula` or
/// `result =`.
bool is_script(std::string_view path, std::string_view text) noexcept;

/// The whole file; of one above plan::max_csv_bytes a byte more than that. Throws Error.
std::string read_input(const std::string& path);

}  // namespace arenite::cli
