// Words for messages and pictures.
#pragma once

#include <arenite/plan/problem.hpp>

#include <cstdint>
#include <string>

namespace arenite::plan {

std::string digits(std::int64_t number);  ///< "1,048,576"
/// Never with a comma, whatever the process's locale; JSON and SVG need that.
std::string decimal(double number, int places);
std::string bytes_text(std::int64_t bytes);    ///< "512 B", "12.5 KiB", "3.00 MiB"
std::string lifetime_text(Lifetime lifetime);  ///< "[0, 3)"
std::string quoted(const Buffer& buffer);      ///< "'x' (4,096 bytes, lifetime [0, 3))"

}  // namespace arenite::plan
