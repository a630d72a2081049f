// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace arenite {

std::string digits(std::int64_t number);  ///< "1,048,576"
/// "1 op", "2,000 ops", "2 copies": `one` is what one of them is called.
std::string counted(std::int64_t number, std::string_view one);

}  // namespace arenite
